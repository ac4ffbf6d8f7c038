"""`cdk synth` runs this; without the CDK's command it writes the templates to CDK_OUTDIR."""

import sys

from infra.context import ContextInvalid
from infra.stacks import app

try:
    app().synth()
except ContextInvalid as error:
    sys.exit(str(error))
