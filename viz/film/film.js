// A model while it learns: the maps of each moment, and curves of how well it does. Scrubbing asks no server.
const FRAME = 900 // ms a moment is shown while playing
const SIDE = 250, CURVE = [430, 270], PAD = { left: 8, right: 96, top: 10, bottom: 34 }

const films = new WeakMap()

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".film")
  if (!films.has(parentElement)) films.set(parentElement, new Film(root))
  const film = films.get(parentElement)
  film.receive(data)
  return () => film.stop()
}

class Film {
  constructor(root) {
    this.root = root
    this.slider = root.querySelector("input")
    this.button = root.querySelector(".play")
    this.slider.oninput = () => this.show()
    this.button.onclick = () => (this.playing ? this.stop() : this.play())
  }

  async receive(data) {
    const arrival = (this.arrival = {})
    const [maps, queries, keys] = data.shape
    const codes = data.id === this.data?.id ? this.numbers.codes : await unpack(data.codes.getChildAt(0).toArray(), maps * queries * keys)
    if (this.arrival !== arrival || !this.root.isConnected) return
    const other = data.id !== this.data?.id
    Object.assign(this, { data, numbers: new Numbers(codes, data), ink: readInk(this.root, data) })
    this.slider.max = data.steps.length - 1
    this.slider.setAttribute("aria-label", data.words.slider)
    if (other) this.slider.value = data.steps.length - 1
    this.button.textContent = data.words.play
    this.canvases = this.fill()
    this.show()
  }

  fill() {
    const titles = [...this.data.layers, this.data.words.curves]
    const figures = titles.map((title) => {
      const figure = document.createElement("figure")
      figure.append(Object.assign(document.createElement("figcaption"), { textContent: title }), document.createElement("canvas"))
      return figure
    })
    this.root.querySelector(".pictures").replaceChildren(...figures)
    return figures.map((figure) => figure.lastChild)
  }

  get moment() {
    return +this.slider.value
  }

  play() {
    if (this.moment === this.data.steps.length - 1) this.slider.value = 0
    this.button.textContent = this.data.words.pause
    this.show()
    this.playing = setInterval(() => {
      if (this.moment >= this.data.steps.length - 1) return this.stop()
      this.slider.value = this.moment + 1
      this.show()
    }, FRAME)
  }

  stop() {
    clearInterval(this.playing)
    this.playing = null
    if (this.data) this.button.textContent = this.data.words.play
  }

  show() {
    const { data, moment, canvases } = this
    const measured = Object.entries(data.curves).map(([name, values]) => `${name} ${values[moment].toFixed(2)}`)
    const words = `${data.words.step.replace("{step}", data.steps[moment])}: ${[data.answers[moment], ...measured].join(" · ")}`
    this.root.querySelector(".says").textContent = words
    this.slider.setAttribute("aria-valuetext", words)
    data.layers.forEach((_, layer) => this.paintMap(canvases[layer], moment * data.layers.length + layer))
    this.paintCurves(canvases.at(-1), moment)
  }

  paintMap(canvas, map) {
    const { numbers, data, ink } = this
    const side = Math.min(SIDE / Math.max(numbers.queries, numbers.keys), 24)
    const labelled = side >= 10, edge = labelled ? 20 : 2
    const layout = { side, left: edge, below: edge, width: edge + numbers.keys * side + 2, height: 4 + numbers.queries * side + edge }
    const context = canvasContext(canvas, layout)
    const picture = new OffscreenCanvas(numbers.keys, numbers.queries)
    const wide = numbers.keys * side, tall = numbers.queries * side
    if (paintPixels(picture, numbers, map, data, ink)) hatch(context, edge, 2, wide, tall, ink)
    context.imageSmoothingEnabled = side < 1
    context.drawImage(picture, edge, 2, wide, tall)
    context.font = ink.font
    context.fillStyle = ink.text
    context.textBaseline = "middle"
    if (!labelled) return
    data.tokens.forEach((token, n) => {
      context.textAlign = "right"
      context.fillText(token, edge - 5, 2 + (n + 0.5) * side)
      context.textAlign = "center"
      context.fillText(token, edge + (n + 0.5) * side, 2 + tall + 11)
    })
  }

  paintCurves(canvas, moment) {
    const { data, ink } = this
    const [width, height] = [Math.min(CURVE[0], this.root.clientWidth - 8), CURVE[1]]
    const context = canvasContext(canvas, { width, height })
    const last = data.steps.length - 1
    const x = (n) => PAD.left + (n / Math.max(last, 1)) * (width - PAD.left - PAD.right)
    const y = (share) => height - PAD.bottom - share * (height - PAD.top - PAD.bottom)
    context.font = ink.font
    context.strokeStyle = context.fillStyle = ink.text
    context.globalAlpha = 0.3
    for (const share of [0, 1]) line(context, [[x(0), y(share)], [x(last), y(share)]])
    context.globalAlpha = 1
    line(context, [[x(moment), y(1)], [x(moment), y(0)]])
    context.textAlign = "center"
    let free = -Infinity
    data.steps.forEach((step, n) => {
      const half = context.measureText(step).width / 2 + 3
      if (x(n) - half < free) return
      free = x(n) + half
      context.fillText(step, x(n), height - PAD.bottom + 15)
    })
    context.textAlign = "left"
    let below = -Infinity
    const curves = Object.entries(data.curves).map(([name, values], n) => ({ name, n, values, most: Math.max(1, ...values) }))
    curves.forEach(({ values, most, n }) => {
      context.strokeStyle = ink.heads[n]
      context.lineWidth = 2
      context.setLineDash(n ? [7 - n, n] : [])
      line(context, values.map((value, at) => [x(at), y(value / most)]))
    })
    context.setLineDash([])
    const ends = curves.map((curve) => ({ ...curve, at: y(curve.values[last] / curve.most) })).sort((a, b) => a.at - b.at)
    for (const { name, n, at } of ends) {
      below = Math.max(at, below + FONT + 3)
      context.fillStyle = ink.heads[n]
      context.fillText(name, x(last) + 8, below + 4)
    }
  }
}

function line(context, points) {
  context.beginPath()
  for (const point of points) context.lineTo(...point)
  context.stroke()
}
