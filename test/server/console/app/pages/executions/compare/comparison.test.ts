import { expect, test } from 'vitest'
import {
  type ComparedNode,
  differentParts,
  isDifferent,
  versionsHref,
} from '../../../../../../../server/console/app/pages/executions/compare/comparison.ts'

const run = { status: 'completed', model_id: 'a', duration_ms: 1_000, cost: 0.5 } as const
const node = (more: Partial<ComparedNode>): ComparedNode => ({
  node_id: 'write',
  first: run,
  second: run,
  different: [],
  unknown: [],
  ...more,
})

test.each<[title: string, node: ComparedNode, parts: string[], isDifferent: boolean]>([
  ['the same', node({}), [], false],
  ['another result', node({ different: ['result'] }), ['result'], true],
  ['only the time', node({ second: { ...run, duration_ms: 1_900 } }), ['time'], false],
  ['a time that is shown alike', node({ second: { ...run, duration_ms: 1_004 } }), [], false],
  ['only the cost', node({ second: { ...run, cost: 0.6 } }), ['cost'], false],
  [
    'a cost that is not known yet',
    node({ second: { ...run, duration_ms: null, cost: null } }),
    ['time', 'cost'],
    false,
  ],
  ['a node that the second lacks', node({ second: null }), [], true],
  ['a node that the first lacks', node({ first: null }), [], true],
])('%s', (_, compared, parts, different) => {
  expect(differentParts(compared)).toEqual(parts)
  expect(isDifferent(compared)).toBe(different)
})

const of = (workflow_id: string | null, workflow_version: number | null) => ({ workflow_id, workflow_version })

test.each([
  [of('wf_a', 3), of('wf_a', 1), '/workflows/wf_a/versions?older=1&newer=3'],
  [of('wf_a', 9), of('wf_a', 10), '/workflows/wf_a/versions?older=9&newer=10'],
  [of('wf_a', 1), of('wf_a', 1), undefined],
  [of('wf_a', 1), of('wf_b', 2), undefined],
  [of(null, null), of(null, null), undefined],
])('the versions of %j and %j', (one, other, href) => {
  expect(versionsHref(one, other)).toBe(href)
})
