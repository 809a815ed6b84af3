import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { baseDirectory, homeDirectory } from '../../core/base-directory.ts'
import { dataDirectory } from '../../core/config.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

test.each([
  [{ XDG_STATE_HOME: '/state', HOME: '/home/me' }, '/state'],
  [{ XDG_STATE_HOME: '', HOME: '/home/me' }, '/home/me/.local/state'],
  [{ XDG_STATE_HOME: 'state', HOME: '/home/me' }, '/home/me/.local/state'],
  [{}, join(homedir(), '.local/state')],
])('with %j it is %s', (environment, folder) => {
  expect(baseDirectory('XDG_STATE_HOME', environment)).toBe(folder)
})

test.each([
  [{}, '/elsewhere', '/elsewhere'],
  [{ INFER_DATA_DIR: '/data', XDG_DATA_HOME: '/x' }, undefined, '/data'],
  [{ INFER_DATA_DIR: '', XDG_DATA_HOME: '/x' }, undefined, '/x/infer'],
  [{ INFER_DATA_DIR: '', XDG_DATA_HOME: '', HOME: '/home/me' }, undefined, '/home/me/.local/share/infer'],
  [{ INFER_DATA_DIR: '', XDG_DATA_HOME: 'x', HOME: '/home/me' }, undefined, '/home/me/.local/share/infer'],
])('with %j and --data-dir %s the data directory is %s', (environment, flag, folder) => {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
  expect(dataDirectory(flag)).toBe(folder)
})

test('an empty --data-dir is refused: it would be the current folder', () => {
  expect(() => dataDirectory('')).toThrow('--data-dir is empty. Name a folder, or leave it out')
})

test('a user whom the system does not know, as a dynamic one without libnss-systemd, has the home directory of the root', () => {
  const unknown = () => {
    throw new Error('uv_os_homedir returned ENOENT')
  }
  expect(homeDirectory({}, unknown)).toBe('/')
  expect(homeDirectory({ HOME: '/home/me' }, unknown)).toBe('/home/me')
})
