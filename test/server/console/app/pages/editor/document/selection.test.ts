import { expect, test } from 'vitest'
import {
  type Part,
  parametersFor,
  planOf,
} from '../../../../../../../server/console/app/pages/editor/document/selection.ts'
import { parseWorkflow } from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const { workflow } = parseWorkflow(`name: A
parameters:
  topic: { type: string, default: tea }
  size: { type: integer }
dag:
  nodes:
    find: { task: t, inputs: { text: '\${input.topic}' } }
    sort: { task: t, pin: [1], inputs: { text: '\${nodes.find.result.text}' } }
    write: { task: t, inputs: { text: '\${nodes.sort.result} \${input.mood}' } }
    paint: { task: t, inputs: { prompt: '\${nodes.write.result.text}', size: '\${input.size}' } }
    say: { task: t, for_each: '\${nodes.write.result.parts}', inputs: {} }
`)

test.each<[string, Part | undefined, string[], string[], string[], string[]]>([
  ['the whole', undefined, ['find', 'write', 'paint', 'say'], ['sort'], [], ['topic', 'size', 'mood']],
  ['one node', { only: 'paint' }, ['paint'], [], ['write'], ['size']],
  ['one node with a list', { only: 'say' }, ['say'], [], ['write'], []],
  // What only a pinned node needs does not run either.
  ['up to a node', { to: 'paint' }, ['write', 'paint'], ['sort'], [], ['size', 'mood']],
  // A node that is named runs in spite of its pin.
  ['up to a pinned node', { to: 'sort' }, ['find', 'sort'], [], [], ['topic']],
  ['only a pinned node', { only: 'sort' }, ['sort'], [], ['find'], []],
])('a run of %s', (_, part, runs, pinned, missing, parameters) => {
  const plan = planOf(workflow, part)
  expect({ ...plan, runs: plan.runs.map(({ id }) => id) }).toEqual({ runs, pinned, missing })
  expect([...parametersFor(workflow, part, plan).keys()]).toEqual(parameters)
})
