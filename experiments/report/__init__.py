"""The report: results of the experiments as tables, figures and one page. Nothing is measured here."""
