import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

/** Runs postinst with programs that change nothing on this machine; `systemctl` answers with these statuses. */
function postinst(args: string[], statuses: Record<string, number>) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-debian-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const tools = join(folder, 'tools')
  mkdirSync(tools)
  const program = (name: string, text: string) =>
    writeFileSync(join(tools, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const answers = Object.entries(statuses).map(([verb, status]) => `${verb}) exit ${status};;`)
  program('systemctl', `echo "$*" >> ${folder}/calls\ncase "$1" in ${answers.join(' ')} esac`)
  program('getent', 'exit 0')
  symlinkSync(folder, join(folder, 'data'))
  const script = readFileSync('bin/debian/postinst', 'utf8')
    .replaceAll('/run/systemd/system', folder)
    .replaceAll('/var/lib/infer', join(folder, 'data'))
  const env = { PATH: `${tools}${delimiter}${process.env.PATH}` }
  const { status, stderr } = spawnSync('sh', ['-c', script, 'postinst', ...args], { env, encoding: 'utf8' })
  return { status, stderr, calls: readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n') }
}

test('an upgrade restarts a running service', () => {
  const { status, stderr, calls } = postinst(['configure', '0.9'], {})
  expect([status, stderr]).toEqual([0, ''])
  expect(calls).toEqual(['daemon-reload', 'try-restart infer.service'])
})

test('an upgrade whose service does not start ends well and says where the reason is', () => {
  const { status, stderr } = postinst(['configure', '0.9'], { 'try-restart': 1 })
  expect([status, stderr]).toEqual([0, expect.stringContaining('journalctl --unit infer')])
})

test('a first installation starts nothing', () => {
  expect(postinst(['configure'], {}).calls).toEqual(['daemon-reload'])
})
