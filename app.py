"""`cdk synth` runs this; without the CDK's command it writes the templates to CDK_OUTDIR."""

import sys

try:
    from infra.context import ContextInvalid
    from infra.stacks import app
except ImportError as error:  # another Python, or an environment without the CDK
    sys.exit(f"{sys.executable} cannot run app.py: {error}; pip install -r requirements.txt with Python 3.11 or later")

try:
    app().synth()
except ContextInvalid as error:
    sys.exit(str(error))
