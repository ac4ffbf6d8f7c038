"""The feedback function: receipts to read, outcomes to write, and nothing else."""

from mats.adapters import aws
from mats.adapters.clock import SystemClock
from mats.adapters.dynamodb.outcomes import DynamoOutcomes
from mats.adapters.dynamodb.receipts import DynamoReceipts
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.retention import Retention
from mats.bootstrap.observers import service_observer
from mats.edge.feedback import FeedbackService
from mats.settings import Settings
from mats.usecases.record_feedback import RecordFeedback


def open_feedback(settings: Settings) -> FeedbackService:
    """The service over the tables of the stacks; makes no call.

    Raises:
        NotPermitted: AWS's own settings cannot be used.
    """
    tables = Tables(region=settings.region, session=aws.session("DynamoDB"))
    record = RecordFeedback(
        receipts=DynamoReceipts(tables, settings.receipts_table, Retention(settings.receipt_days)),
        outcomes=DynamoOutcomes(tables, settings.outcomes_table, settings.tallies_table),
        clock=SystemClock(),
        days=settings.receipt_days,
    )
    return FeedbackService(record, service_observer(settings, "feedback"))
