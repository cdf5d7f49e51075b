"""The app's page and the cheapest page there can be, on one server, to be timed side by side."""

import streamlit as st

from sections import attend


def floor() -> None:
    """Rewrites one number."""
    st.session_state.setdefault("count", 0)
    st.button("count", on_click=lambda: st.session_state.update(count=st.session_state.count + 1))
    st.markdown(f"now {st.session_state.count}")


st.set_page_config(layout="wide")
pages = [st.Page(attend.render, title="app", default=True), st.Page(floor, title="floor", url_path="floor")]
st.navigation(pages, position="hidden").run()
