import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { Failure } from '../../../core/failure.ts'
import type { WorkflowRecord } from '../../../core/store/workflows.ts'
import { surveyInTimeSlices } from '../../../core/workflows/diagnose.ts'
import type { Offer } from '../../../core/workflows/diagnose-node.ts'
import { offerOf } from '../../../core/workflows/offer.ts'
import { newWorkflow } from '../../store/conformance/drawn.ts'

const split = (more: object = {}) => ({ task: 'text/split', inputs: { text: 'a b' }, ...more })
const runs = (workflow: string, input: object = {}, more: object = {}) => ({
  task: 'workflow/run',
  inputs: { workflow, input },
  ...more,
})
const record = (id: string, nodes: object, parameters: WorkflowRecord['parameters'] = {}): WorkflowRecord => ({
  ...newWorkflow({ id, name: id, parameters, dag: Dag.parse({ nodes, edges: [] }) }),
  version: 1,
  updatedAt: 0,
})
const always = { when: { value: '${execution.id}', exists: true } }
const workflows = [
  record(
    'Inner',
    { parts: split({ outputs: ['count'] }), all: split() },
    { topic: { type: 'string' }, size: { type: 'integer', default: 3, maximum: 9 } },
  ),
  record('Back', { again: runs('Self') }),
  record('Far', { on: runs('Back') }),
  record('Perhaps', { again: runs('Self', {}, always) }),
  record('Loop', { again: runs('Loop') }),
]
const offer: Offer = {
  ...offerOf({ all: () => [], find: () => undefined, catalog: () => new Map() }, () => true),
  findWorkflow: (name, version = 1) => {
    const found = [...workflows, record('Self', {})].find(one => one.id === name && version === 1)
    return found ? Promise.resolve(found) : Promise.reject(new Failure('not_found', `There is no workflow '${name}'.`))
  },
}
const topic = { topic: 'tea' }
const result = (path: string, more: object = {}) => ({
  sub: runs('Inner', topic, more),
  after: split({ inputs: { text: `\${nodes.sub.result${path}}` } }),
})

test.for<[rule: string, nodes: object, findings: string[]]>([
  ['a workflow with its parameters is valid', { sub: runs('Inner', topic) }, []],
  ['an unknown one', { sub: runs('Other') }, ['unknown_workflow inputs.workflow']],
  [
    'an unknown version',
    { sub: { task: 'workflow/run', inputs: { workflow: 'Inner', version: 7 } } },
    ['unknown_workflow inputs.workflow'],
  ],
  ['references decide the name: nothing is known', { sub: runs('${execution.id}', { any: 1 }) }, []],
  ['a missing parameter', { sub: runs('Inner') }, ['missing_input inputs.input.topic']],
  [
    'an unknown parameter, with the one that was meant',
    { sub: runs('Inner', { topik: 'tea' }) },
    ['missing_input inputs.input.topic', 'unknown_input inputs.input.topik topic'],
  ],
  ['a wrong type', { sub: runs('Inner', { topic: 4 }) }, ['type_mismatch inputs.input.topic']],
  ['a value out of range', { sub: runs('Inner', { ...topic, size: 12 }) }, ['value_out_of_range inputs.input.size']],
  [
    'a reference of another type',
    { a: split(), sub: runs('Inner', { topic: '${nodes.a.result.chunks}' }) },
    ['type_mismatch inputs.input.topic'],
  ],
  [
    'a reference within a text may be anything',
    { a: split(), sub: runs('Inner', { topic: 'x ${nodes.a.result.count}' }) },
    [],
  ],
  ['a value of the result', result('.all.result.chunks[0]'), []],
  [
    'its type',
    { sub: runs('Inner', topic), after: runs('Inner', { topic: '${nodes.sub.result.all.result.count}' }) },
    ['type_mismatch inputs.input.topic'],
  ],
  ['kept values by path', result('.parts.values.count'), []],
  ['a node that the workflow lacks', result('.part.result.count'), ['unknown_output_path inputs.text parts']],
  ['a member that its node lacks', result('.parts.outputs'), ['unknown_output_path inputs.text']],
  ['a member that its result lacks', result('.all.result.chunk'), ['unknown_output_path inputs.text chunks']],
  ['a value that its node does not keep', result('.parts.result.chunks[0]'), ['unknown_output_path inputs.text']],
  ['of a list, a value of one result', result('[1].all.result.chunks[0]', { for_each: ['a'] }), []],
  [
    'of a list, the values of all results',
    result('[*].all.result.count', { for_each: ['a'] }),
    ['type_mismatch inputs.text'],
  ],
  [
    'of a list, a node that the workflow lacks',
    result('[*].part.result', { for_each: ['a'] }),
    ['unknown_output_path inputs.text parts'],
  ],
  ['of a list, no item', result('.all.result.count', { for_each: ['a'] }), ['unknown_output_path inputs.text']],
  ['it runs itself', { sub: runs('Self') }, ['workflow_cycle inputs.workflow']],
  ['it runs itself through others', { sub: runs('Far') }, ['workflow_cycle inputs.workflow']],
  ['it may run itself under a condition', { sub: runs('Self', {}, always) }, []],
  ['others may under a condition', { sub: runs('Perhaps') }, []],
  ['the cycle of another one is found there', { sub: runs('Loop') }, []],
  ['retries have no effect', { sub: runs('Back', {}, { retries: { max: 1 }, ...always }) }, ['unknown_field retries']],
])('%s', async ([, nodes, findings]) => {
  const { diagnostics } = await surveyInTimeSlices(Dag.parse({ nodes }), undefined, offer, { self: 'Self' })
  const { warnings, type_issues } = diagnostics
  expect(
    [...warnings, ...type_issues].map(({ code, path, suggestion }) =>
      [code, path, suggestion].filter(Boolean).join(' '),
    ),
  ).toEqual(findings)
})
