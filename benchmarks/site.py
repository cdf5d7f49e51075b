"""The app's page and the cheapest page there can be, on one server, to be timed side by side."""

import streamlit as st

from sections import attend, lab


def floor() -> None:
    """Rewrites one number."""
    st.session_state.setdefault("count", 0)
    st.button("count", on_click=lambda: st.session_state.update(count=st.session_state.count + 1))
    st.markdown(f"now {st.session_state.count}")


st.set_page_config(layout="wide")
app = st.Page(lambda: lab.draw(attend.render), title="app", url_path="app", default=True)
st.navigation([app, st.Page(floor, title="floor", url_path="floor")], position="hidden").run()
