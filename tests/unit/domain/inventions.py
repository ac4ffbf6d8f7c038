"""Sixty abilities that writers like to invent: five or so for each of twelve registrations that say nothing of them."""

from collections.abc import Mapping, Sequence

INVENTED: Mapping[tuple[str, str], Sequence[str]] = {
    ("get_forecast", "Returns the weather forecast for a city."): (
        "Sends a warning when a storm approaches.",
        "Covers air quality and pollen.",
        "Shows the climate of the past thirty years.",
        "Answers in any language.",
        "Recommends what to wear.",
    ),
    ("convert_currency", "Converts an amount between two currencies."): (
        "Transfers the money to a bank account.",
        "Tracks cryptocurrency prices live.",
        "Charts past exchange rates.",
        "Warns you when a rate is favourable.",
        "Pays out the converted amount in cash.",
    ),
    ("search_flights", "Find flights between two airports on a date."): (
        "Books the seat and pays by card.",
        "Compares hotel prices at the destination.",
        "Notifies travellers of delayed flights.",
        "Guarantees the cheapest fare.",
        "Checks passengers in online.",
    ),
    ("summarize_pdf", "Summarizes a PDF document."): (
        "Translates the summary into other languages.",
        "Reads scanned pages and handwriting.",
        "Emails the summary to colleagues.",
        "Answers questions about the document.",
        "Extracts tables and figures.",
    ),
    ("sentiment-base", "Classifies the sentiment of English movie reviews."): (
        "Detects sarcasm and emotions in speech.",
        "Runs on a phone without a connection.",
        "Works in more than a hundred languages.",
        "Explains each prediction.",
        "Flags hate speech.",
    ),
    ("playlist_tracks", "Lists the tracks of a playlist."): (
        "Plays the tracks on any speaker.",
        "Finds the lyrics of each song.",
        "Recommends similar artists.",
        "Downloads songs for offline listening.",
        "Shares the playlist with friends.",
    ),
    ("order_status", "Returns the status of an order by its number."): (
        "Cancels or changes an order.",
        "Issues refunds.",
        "Calls the courier to change the delivery address.",
        "Predicts when the parcel arrives.",
        "Lets customers rate the shop.",
    ),
    ("recipe_search", "Searches recipes by ingredient."): (
        "Buys the missing ingredients from a supermarket.",
        "Counts the calories of a meal.",
        "Plans meals for a week.",
        "Teaches cooking by video.",
        "Adapts portions to allergies.",
    ),
    ("code_reviewer", "Reviews pull requests for style problems."): (
        "Deploys the code once tests pass.",
        "Fixes the problems by itself.",
        "Scans dependencies for vulnerabilities.",
        "Writes unit tests.",
        "Merges approved changes at night.",
    ),
    ("stock_quote", "Latest price of a stock by ticker."): (
        "Buys and sells shares on the user's behalf.",
        "Alerts investors to sudden price moves.",
        "Predicts tomorrow's price with machine learning.",
        "Streams quotes in real time.",
        "Analyses company news.",
    ),
    ("invoice-template", "Fills in an invoice template."): (
        "Sends the invoice to the customer and collects the payment.",
        "Calculates the tax of every country.",
        "Archives invoices for ten years.",
        "Reminds late payers.",
        "Signs documents electronically.",
    ),
    ("image_resize", "Resizes an image to given dimensions."): (
        "Removes the background.",
        "Sharpens faces.",
        "Converts between all formats.",
        "Watermarks every image.",
        "Uploads the result to cloud storage.",
    ),
}
