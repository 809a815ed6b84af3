import { expect, test } from 'vitest'
import { checkSandbox, checkSandboxPaths, type SandboxedModel } from '../../../cli/doctor/machine.ts'
import type { SandboxSupport } from '../../../gpu/sandbox/level.ts'

const tool = { name: 'bubblewrap' as const, programs: {}, userNamespace: true, ownProc: true, network: true }
const none: SandboxSupport = { tool: null, why: 'bwrap is not installed' }
const strict: SandboxedModel = { id: 'a', level: 'strict', required: false }
const files: SandboxedModel = { id: 'b', level: 'files', required: false }
const open: SandboxedModel = { id: 'c', level: 'none', required: true }

const cases: [what: string, SandboxSupport, SandboxedModel[], state: string, says: RegExp[]][] = [
  [
    'each level is listed with its models and with what it does not prevent',
    { tool },
    [strict, files, open],
    'fine',
    [
      /^bubblewrap; 'strict' applies to a: it does not limit/,
      /'files' applies to b: it does not block the network/,
      /'none' applies to c/,
    ],
  ],
  [
    'every model whose engine can reach the network is named',
    { tool },
    Array.from({ length: 8 }, (_, at) => ({ ...files, id: `m${at}` })),
    'fine',
    [/'files' applies to m0, m1, m2, m3, m4, m5, m6, m7: it does not block the network/],
  ],
  ['without models the tool is named', { tool }, [], 'fine', [/^bubblewrap$/]],
  ['without a tool there is no limit', none, [strict, files], 'warning', [/bwrap is not installed/, /the keys/]],
  [
    'a model with a level that cannot be enforced is unavailable',
    none,
    [strict, { ...files, required: true }],
    'broken',
    [/^not available: b: 'files' cannot be enforced on this machine: bwrap is not installed$/],
  ],
  [
    'without network namespaces the level strict acts as files',
    { tool: { ...tool, network: false } },
    [strict],
    'warning',
    [/'files' applies to a: it does not block the network/, /network namespaces do not work here/],
  ],
  [
    'and a model with the level strict is unavailable',
    { tool: { ...tool, network: false } },
    [{ ...strict, required: true }],
    'broken',
    [/a: 'strict' cannot be enforced/],
  ],
  ['root is reported', { tool: { ...tool, userNamespace: false } }, [], 'fine', [/engines run as root, as infer does/]],
  [
    'so is a shared list of processes',
    { tool: { ...tool, ownProc: false } },
    [],
    'fine',
    [/command lines of all processes/],
  ],
]

test.each(cases)('%s', (_what, support, models, state, says) => {
  const finding = checkSandbox(support, models)
  expect(finding.state).toBe(state)
  for (const text of says) expect(finding.detail).toMatch(text)
  expect(finding.advice === null).toBe(state === 'fine')
})

test('sandbox paths that do not exist are one warning that names each of them', () => {
  expect(checkSandboxPaths([])).toMatchObject({ state: 'fine' })
  expect(checkSandboxPaths(['One.', 'Two.'])).toMatchObject({ state: 'warning', detail: 'One. Two.' })
})
