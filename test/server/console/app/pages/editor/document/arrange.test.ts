import { expect, test } from 'vitest'
import { layoutGraph } from '../../../../../../../server/console/app/components/graph/layout.ts'
import {
  editOfArrangement,
  framingOf,
  graphToArrange,
} from '../../../../../../../server/console/app/pages/editor/document/arrange.ts'
import { boxOf, isWithin } from '../../../../../../../server/console/app/pages/editor/document/frames.ts'
import { boxOfCard, graphOf, placedCards } from '../../../../../../../server/console/app/pages/editor/document/graph.ts'
import {
  documentText,
  parseWorkflow,
} from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const read = (text: string) => {
  const { workflow } = parseWorkflow(text)
  const { cards, edges } = graphOf(workflow, new Map(), new Set(), false)
  return { cards: placedCards(cards, new Map()), edges, frames: workflow.frames }
}

/** The text of the workflow after *Arrange*. */
function arranged(text: string): string {
  const { cards, edges, frames } = read(text)
  const framing = framingOf(cards, frames)
  const { document } = parseWorkflow(text)
  editOfArrangement(cards, framing, layoutGraph(graphToArrange(cards, edges, framing)))(document)
  return documentText(document, text)
}

/** Which nodes and frames lie in which frame. */
function contents(text: string): string[] {
  const { cards, frames } = read(text)
  const parts = [
    ...cards.filter(({ node }) => node).map(card => ({ name: card.id, box: boxOfCard(card) })),
    ...frames.map(frame => ({ name: frame.text, box: boxOf(frame) })),
  ]
  return frames.map(frame => {
    const inside = parts.filter(({ name, box }) => name !== frame.text && isWithin(box, boxOf(frame)))
    return `${frame.text}: ${inside.map(({ name }) => name).join(' ')}`
  })
}

const node = (id: string, x: number, y: number) =>
  `    ${id}: { task: std/completion, inputs: { prompt: '\${input.words}' }, position: { x: ${x}, y: ${y} } }\n`
const frame = (name: string, x: number, y: number, width: number, height: number) =>
  `    - { text: ${name}, position: { x: ${x}, y: ${y} }, size: { width: ${width}, height: ${height} } }\n`

const framed = `name: A
dag:
  nodes:
${node('a', 0, 0)}${node('b', 4_000, 0)}${node('c', 300, 900)}${node('d', 0, 2_000)}${node('e', 0, 3_000)}\
  edges: [{ from: a, to: d }, { from: d, to: b }, { from: c, to: e }, { from: b, to: e }]
  frames:
${frame('outer', -100, -200, 5_000, 1_500)}${frame('inner', 200, 800, 400, 400)}${frame('note', 0, 6_000, 300, 100)}`

test('after nodes were arranged each frame is around its own nodes and frames again, and around no others', () => {
  const text = arranged(framed)
  expect(contents(framed)).toEqual(['outer: a b c inner', 'inner: c', 'note: '])
  expect(contents(text)).toEqual(contents(framed))
  const [outer, , note] = read(text).frames
  expect(outer!.size.width).toBeLessThan(4_000)
  expect(note).toEqual(read(framed).frames[2])
  // What is arranged already stays.
  expect(arranged(text)).toBe(text)
})

test('a node whose frame was around it only in part is moved without it', () => {
  const text = framed.replace('width: 5000', 'width: 4100')
  expect(contents(arranged(text))).toEqual(['outer: a c inner', 'inner: c', 'note: '])
})

test('frames and nodes lie on no others, however long the texts are, and on no note', () => {
  const long = Array.from({ length: 40 }, () => 'words').join(' ')
  const text = framed
    .replace('text: outer', `text: "${long}"`)
    .replace('text: inner', 'text: "one\\ntwo\\nthree"')
    .replace('text: note, position: { x: 0, y: 6000 }', 'text: note, position: { x: -50, y: 50 }')
  const { cards, frames } = read(arranged(text))
  const boxes = [...cards.filter(({ node }) => node).map(boxOfCard), ...frames.map(boxOf)]
  for (const [at, one] of boxes.entries())
    for (const other of boxes.slice(at + 1)) {
      const apart =
        one.x + one.width <= other.x ||
        other.x + other.width <= one.x ||
        one.y + one.height <= other.y ||
        other.y + other.height <= one.y
      expect(apart || isWithin(one, other) || isWithin(other, one), JSON.stringify([one, other])).toBe(true)
    }
  const note = boxOf(frames[2]!)
  expect(boxes.filter(box => box !== note && isWithin(box, note))).toHaveLength(1)
})
