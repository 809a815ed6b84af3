import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { inferProcess as infer, temporaryFolder } from '../_infer.ts'

const hasSystemd = existsSync('/run/systemd/system')

test('--print prints the unit of a user, with the paths of this program', async () => {
  const { exitCode, stdout, stderr } = await infer(
    ['service', 'install', '--user', '--print', '--listen', '127.0.0.1:9'],
    {
      env: { INFER_DATA_DIR: '/data/of me' },
    },
  )
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^ExecStart=\/\S+node .*dist\/main\.cjs serve --listen 127\.0\.0\.1:9 --drain-timeout 60s$/m)
  expect(stdout).toContain('Environment="INFER_DATA_DIR=/data/of me"')
})

test('--drain-timeout is passed to the server, and the stop timeout is a little longer', async () => {
  const { stdout } = await infer(['service', 'install', '--user', '--print', '--drain-timeout', '5m'])
  expect(stdout).toContain('--drain-timeout 5m')
  expect(stdout).toContain('TimeoutStopSec=330')
})

test.skipIf(hasSystemd).each([[['install', '--user']], [['install', '--system']], [['uninstall', '--user']]])(
  'without systemd %j is refused in one sentence, and nothing is written',
  async args => {
    const home = temporaryFolder()
    const { exitCode, stdout, stderr } = await infer(['service', ...args], { env: { HOME: home } })
    // Where the program itself is in a home folder, the system service is refused for that reason.
    expect([[1, 64].includes(exitCode), stdout]).toEqual([true, ''])
    expect(stderr).toMatch(/^Error: (systemd does not run here|A system service cannot read)/)
    expect(existsSync(`${home}/.config`)).toBe(false)
  },
)

test.each([
  [['install', '--system', '--user'], 'cannot be used with'],
  [['install', '--user', '--run-as', 'ai'], '--run-as is only for a system service.'],
  [['install', '--system', '--data-dir', '/srv/ai', '--print'], 'Give the owner of /srv/ai with --run-as'],
  [['install', '--user', '--config', '/nowhere.yaml'], 'There is no configuration /nowhere.yaml.'],
  [['install', '--drain-timeout', 'soon'], 'Write a duration'],
])('%j is wrong usage', async (args, said) => {
  const { exitCode, stdout, stderr } = await infer(['service', ...args])
  expect([exitCode, stdout]).toEqual([64, ''])
  expect(stderr).toContain(said)
})
