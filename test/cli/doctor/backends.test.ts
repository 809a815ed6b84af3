import { expect, test } from 'vitest'
import { checkBackend } from '../../../cli/doctor/backends.ts'
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
  ['one that works', {}, false, 'fine', null],
  ['one that fails', { state: 'fails', advice: 'Do it.' }, false, 'warning', 'Do it.'],
  ['one that fails where another works', { state: 'fails', advice: 'Do it.' }, true, 'fine', null],
  ['one that is missing for a card', { state: 'missing', advice: 'npm install' }, false, 'warning', 'npm install'],
  ['one that is missing and of no use', { state: 'missing' }, false, 'fine', null],
  ['the processor that fails', { name: 'cpu', state: 'fails', advice: 'Report.' }, true, 'broken', 'Report.'],
])('%s', (_, of, served, state, advice) => {
  expect(checkBackend(report(of), { served })).toEqual({
    name: `backend ${of.name ?? 'cuda'}`,
    state,
    detail: 'as it is',
    advice,
  })
})
