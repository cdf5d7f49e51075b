// Hands pieces of HTML to the places on the page that wait for them.
const channel = (globalThis.attentionLab ??= Object.assign(new EventTarget(), { chosen: { query: null, head: 0, also: [] } }))

export default function ({ data }) {
  channel.pieces = data
  channel.dispatchEvent(new Event("pieces"))
  return () => {
    channel.pieces = undefined
  }
}
