import { expect, test } from 'vitest'
import {
  eventGroups,
  isChosen,
  isCovered,
  withChoice,
} from '../../../server/console/app/pages/webhooks/event-groups.ts'

test('types are grouped by all but their last word', () => {
  expect(eventGroups(['job.completed', 'job.failed', 'workflow_execution.node.failed', 'batch.failed'])).toEqual([
    { name: 'job', pattern: 'job.*', types: ['job.completed', 'job.failed'] },
    {
      name: 'workflow_execution.node',
      pattern: 'workflow_execution.node.*',
      types: ['workflow_execution.node.failed'],
    },
    { name: 'batch', pattern: 'batch.*', types: ['batch.failed'] },
  ])
})

test.each([
  [['job.*'], 'job.failed', true],
  [['workflow_execution.*'], 'workflow_execution.node.*', true],
  [['*'], 'job.*', true],
  [['job.failed'], 'job.failed', false],
  [['job.*'], 'job.*', false],
  [['job.*'], 'batch.failed', false],
])('whether %j stands for %s: %s', (chosen, type, expected) => {
  expect(isCovered(chosen, type)).toBe(expected)
})

test.each([
  [['job.*'], 'job.failed', true],
  [['job.failed'], 'job.failed', true],
  [['job.failed'], 'job.completed', false],
])('whether %j chooses %s: %s', (chosen, type, expected) => {
  expect(isChosen(chosen, type)).toBe(expected)
})

test.each([
  [['job.failed'], 'job.completed', true, ['job.failed', 'job.completed']],
  [['job.failed', 'batch.failed'], 'job.*', true, ['batch.failed', 'job.*']],
  [['job.*', 'batch.failed'], '*', true, ['*']],
  [['job.*', 'batch.failed'], 'job.*', false, ['batch.failed']],
])('%j with %s ticked (%s) is %j', (chosen, type, isTicked, expected) => {
  expect(withChoice(chosen, type, isTicked)).toEqual(expected)
})
