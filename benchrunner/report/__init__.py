"""Pages of results: ``ReportData`` in, a folder with Markdown, HTML, CSV and charts out.

Reads no store and measures nothing; ``page.write_page`` is the only function that writes.
"""
