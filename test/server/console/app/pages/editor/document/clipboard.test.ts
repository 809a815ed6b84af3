import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { copiedText, pasteOf } from '../../../../../../../server/console/app/pages/editor/document/clipboard.ts'
import {
  documentText,
  parseWorkflow,
} from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const source = `name: Story
dag:
  nodes:
    write: { task: std/completion, model_id: m, inputs: { prompt: '\${input.topic}' } }
    paint: { task: slug/text-to-image, model_id: m, inputs: { prompt: '\${nodes.write.result.text}' } }
    show: { task: slug/text-to-image, model_id: m, inputs: { prompt: '\${nodes.paint.result.seed_used}' } }
  edges:
    - { from: write, to: paint }
    - { from: paint, to: show }
`
const { value, workflow, document } = parseWorkflow(source)

test('copied nodes are a workflow of their own, with the edges between them', () => {
  const copied = parse(copiedText(value, new Set(['write', 'paint']))!) as typeof value
  expect(copied).toMatchObject({ dag: { edges: [{ from: 'write', to: 'paint' }] } })
  expect(Object.keys((copied!.dag as { nodes: object }).nodes)).toEqual(['write', 'paint'])
  expect(copiedText(value, new Set(['other']))).toBeUndefined()
})

test('pasted nodes take from their copies what they took from each other, and the rest from where it was', () => {
  pasteOf(copiedText(value, new Set(['paint', 'show']))!, workflow)!(document)
  const pasted = parse(documentText(document, source)) as { dag: { nodes: Record<string, unknown>; edges: object[] } }
  expect(pasted.dag.nodes).toMatchObject({
    paint2: { inputs: { prompt: '${nodes.write.result.text}' } },
    show2: { inputs: { prompt: '${nodes.paint2.result.seed_used}' } },
  })
  expect(pasted.dag.edges).toContainEqual({ from: 'paint2', to: 'show2' })
})

test.each(['', 'just words', '{', 'name: x', 'dag: { nodes: {} }', '- 1'])('%j has no nodes to paste', text => {
  expect(pasteOf(text, workflow)).toBeUndefined()
})
