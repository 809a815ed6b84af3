import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

/**
 * Runs postinst with programs that change nothing on this machine; they exit with the status of the first word that their
 * arguments contain. Where `policy-rc.d` has a status, there is one.
 */
function postinst(args: string[], statuses: Record<string, number> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-debian-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const tools = join(folder, 'tools')
  mkdirSync(tools)
  const program = (name: string, text: string) =>
    writeFileSync(join(tools, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const answers = Object.entries(statuses).map(([word, status]) => `*${word}*) exit ${status};;`)
  const answering = (name: string) =>
    program(name, `echo "${name} $*" >> ${folder}/calls\ncase "${name} $*" in ${answers.join(' ')} esac`)
  answering('systemctl')
  answering('infer')
  if (statuses['policy-rc.d'] !== undefined) answering('policy-rc.d')
  program('getent', 'exit 0')
  symlinkSync(folder, join(folder, 'data'))
  const script = readFileSync('bin/debian/postinst', 'utf8')
    .replaceAll('/run/systemd/system', folder)
    .replaceAll('/var/lib/infer', join(folder, 'data'))
    .replaceAll(/\/usr\/s?bin\/(infer|policy-rc\.d)/g, join(tools, '$1'))
  const env = { PATH: `${tools}${delimiter}${process.env.PATH}` }
  const { status, stderr } = spawnSync('sh', ['-c', script, 'postinst', ...args], { env, encoding: 'utf8' })
  return { status, stderr, calls: readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n') }
}

const isActive = 'systemctl --quiet is-active infer.service'
const takesOver = 'infer service upgrade --system --or-restart'

test('in an upgrade the new version takes over from a running server', () => {
  const { status, stderr, calls } = postinst(['configure', '0.9'])
  expect([status, stderr]).toEqual([0, ''])
  expect(calls).toEqual(['systemctl daemon-reload', isActive, takesOver])
})

test('an upgrade restarts a server that is starting, and none that is stopped', () => {
  const { status, calls } = postinst(['configure', '0.9'], { 'is-active': 3, 'try-restart': 1 })
  expect(status).toBe(0)
  expect(calls).toEqual(['systemctl daemon-reload', isActive, 'systemctl try-restart infer.service'])
})

test('an upgrade whose new version does not run ends well and says where the reason is', () => {
  const { status, stderr } = postinst(['configure', '0.9'], { upgrade: 1 })
  expect([status, stderr]).toEqual([0, expect.stringContaining('journalctl --unit infer')])
})

test.each([
  [101, []],
  [104, [isActive, takesOver]],
  [0, [isActive, takesOver]],
])('an administrator whose policy-rc.d answers %i gets these calls: %j', (status, calls) => {
  expect(postinst(['configure', '0.9'], { 'policy-rc.d': status }).calls).toEqual([
    'systemctl daemon-reload',
    'policy-rc.d infer.service restart',
    ...calls,
  ])
})

test('a first installation starts nothing', () => {
  expect(postinst(['configure']).calls).toEqual(['systemctl daemon-reload'])
})
