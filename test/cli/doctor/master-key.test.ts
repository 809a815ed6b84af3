import { expect, test } from 'vitest'
import { checkMasterKey } from '../../../cli/doctor/installation.ts'

const facts = { dataDir: '/data', inEnvironment: false, file: undefined, mode: undefined }

test.for<[title: string, facts: object, state: string, text: string]>([
  ['in the data directory', {}, 'fine', '/data/master-key'],
  ['in the environment', { inEnvironment: true }, 'warning', 'INFER_MASTER_KEY_FILE'],
  ['in a file', { file: '/key', mode: 0o100600 }, 'fine', '/key'],
  ['in a file that everybody can read', { file: '/key', mode: 0o100644 }, 'warning', 'chmod 600 /key'],
  ['in a missing file', { file: '/key' }, 'broken', 'there is no file /key'],
  ['in both', { inEnvironment: true, file: '/key', mode: 0o100600 }, 'broken', 'Unset INFER_MASTER_KEY.'],
])('a master key %s', ([, more, state, text]) => {
  const finding = checkMasterKey({ ...facts, ...more })
  expect(finding.state).toBe(state)
  expect(`${finding.detail} ${finding.advice}`).toContain(text)
})
