import { expect, test } from 'vitest'
import { setValue } from '../../../../../../../server/console/app/pages/editor/document/edits.ts'
import { openStored, sourceOf } from '../../../../../../../server/console/app/pages/editor/document/source.ts'
import {
  documentText,
  parseWorkflow,
} from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const texts = [
  'yes',
  '1',
  '# no comment',
  'a: b',
  'two\nlines',
  ' \n  indented\n\nlast\n',
  '',
  '${nodes.a.result}',
  '"',
]
const nodes = Object.fromEntries(
  Array.from({ length: 120 }, (_, at) => {
    const inputs = {
      prompt: texts[at % texts.length],
      seed: at / 3,
      list: [1, [], {}, null, { b: texts[(at + 1) % 9] }],
    }
    return [`node ${at}`, { task: 'slug/text-to-image', inputs, outputs: at % 2 ? ['images'] : [], on_error: 'fail' }]
  }),
)
const head = { name: 'A: b', region: 'Global', on_failure: 'fail_fast', description: 'of\nlines', timeout: 60 }
const edges = [{ from: 'node 1', to: 'node 2' }]

test.each([
  ['many nodes', { ...head, parameters: null, dag: { nodes, edges } }],
  ['no nodes', { ...head, parameters: { topic: { type: 'string' } }, dag: { nodes: {} } }],
  ['no graph', { ...head, parameters: null }],
])('a stored workflow with %s is opened as its YAML would be read, and edited alike', async (_, stored) => {
  const { source, parsed } = await openStored(stored as never)
  expect(source).toBe(sourceOf(stored as never))
  const read = parseWorkflow(source)
  expect([parsed.value, parsed.workflow, parsed.faults]).toEqual([read.value, read.workflow, []])
  const edits = [
    setValue(['dag', 'nodes', 'node 3', 'inputs', 'prompt'], 'new\nwords'),
    setValue(['dag', 'nodes', 'node 4', 'inputs', 'list'], undefined),
    setValue(['dag', 'nodes', 'added'], { task: 'std/completion', inputs: { prompt: 'a' } }),
    setValue(['description'], 'other'),
  ]
  for (const edit of edits) {
    edit(parsed.document)
    edit(read.document)
    // Where it was read, a text that is changed keeps its style.
    const said = [parsed, read].map(({ document }) => parseWorkflow(documentText(document, source)).value)
    expect(said[0]).toEqual(said[1])
  }
})
