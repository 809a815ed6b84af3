import { expect, test } from 'vitest'
import { checkBackend } from '../../../cli/doctor/machine.ts'
import type { BackendReport } from '../../../gpu/engines/gguf/backend.ts'

const report = (of: Partial<BackendReport>): BackendReport => ({
  name: 'cuda',
  state: 'works',
  detail: 'as it is',
  advice: null,
  folder: null,
  ...of,
})

test.each<[what: string, report: Partial<BackendReport>, served: boolean, state: string, advice: string | null]>([
  ['a backend that works', {}, false, 'fine', null],
  ['a backend that fails', { state: 'fails', advice: 'Do it.' }, false, 'warning', 'Do it.'],
  ['a backend that fails where another works', { state: 'fails', advice: 'Do it.' }, true, 'fine', null],
  ['a missing backend for a GPU', { state: 'missing', advice: 'npm install' }, false, 'warning', 'npm install'],
  ['a missing backend that is not needed', { state: 'missing' }, false, 'fine', null],
  ['a failing CPU backend', { name: 'cpu', state: 'fails', advice: 'Report.' }, true, 'broken', 'Report.'],
])('%s', (_, of, served, state, advice) => {
  expect(checkBackend(report(of), { served })).toEqual({
    name: `backend ${of.name ?? 'cuda'}`,
    state,
    detail: 'as it is',
    advice,
  })
})
