"""The pages. With app.py, the only code that knows of Streamlit."""
