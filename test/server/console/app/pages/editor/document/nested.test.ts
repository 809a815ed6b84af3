import { expect, test } from 'vitest'
import {
  schemaOfParameters,
  workflowOptions,
} from '../../../../../../../server/console/app/pages/editor/document/nested.ts'

test('the parameters of a workflow become a schema for the form of a node that runs it', () => {
  const parameters = {
    topic: { type: 'string', description: 'About what' },
    picture: { type: 'image', required: false },
    size: { type: 'integer', default: 1, minimum: 0, maximum: 9 },
    tone: { type: 'string', enum: ['kind', 'short'] },
  }
  expect(schemaOfParameters(parameters)).toEqual({
    type: 'object',
    properties: {
      topic: { type: 'string', description: 'About what' },
      picture: { type: 'string' },
      size: { type: 'integer', minimum: 0, maximum: 9 },
      tone: { enum: ['kind', 'short'] },
    },
    required: ['topic', 'tone'],
  })
})

test('a workflow is chosen by its name, and by its id where the name is not enough', () => {
  const [a, b, c] = ['Report', 'Twin', 'Twin'].map((name, at) => ({ id: `wf_${at}`, name })) as [Named, Named, Named]
  expect(workflowOptions([a, b, c], '').map(({ id }) => id)).toEqual(['Report', 'wf_1', 'wf_2'])
  expect(workflowOptions([a], 'wf_0')).toEqual([{ id: 'wf_0', name: 'Report (wf_0)' }])
  expect(workflowOptions([a], 'Gone').map(({ id }) => id)).toEqual(['Report', 'Gone'])
})
type Named = { id: string; name: string }
