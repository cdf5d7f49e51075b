// Hands pieces of HTML to the places on the page that wait for them.
export default function ({ data }) {
  channel.pieces = data
  tell("pieces")
  return () => {
    if (channel.pieces === data) channel.pieces = {}
  }
}
