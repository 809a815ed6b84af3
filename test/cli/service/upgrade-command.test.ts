import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runInProcess } from '../_in-process.ts'
import { temporaryFolder } from '../_infer.ts'

/** A machine with a service whose systemctl does this, and a server on its data directory that cannot hand over. */
function machine({ tryRestart = '', start = '', isRunning = true } = {}) {
  const folder = temporaryFolder()
  const [dataDir, asked] = [join(folder, 'data'), join(folder, 'asked')]
  mkdirSync(dataDir)
  const write = (name: string, script: string): string => {
    const path = join(folder, name)
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
    return path
  }
  const executable = write('infer', 'echo 1.0.0')
  write('unit', `ExecStart=${executable} serve\nEnvironment=INFER_DATA_DIR=${dataDir}`)
  const serverFile = join(dataDir, 'server.json')
  write(
    'systemctl',
    `echo "$*" >> ${asked}
fail() { echo "$1" >&2; exit 1; }
serves() { echo '{"url":"http://127.0.0.1:1","pid":'"$1"'}' > ${serverFile}; }
case "$*" in
*cat*) cat ${folder}/unit ;;
*try-restart*) ${tryRestart || ':'} ;;
*start*) ${start || ':'} ;;
esac`,
  )
  const server = spawn('sleep', ['60'])
  onTestFinished(() => void server.kill())
  if (isRunning) writeFileSync(serverFile, JSON.stringify({ url: 'http://127.0.0.1:1', pid: server.pid }))
  return {
    pid: server.pid!,
    dataDir,
    next: write('next', 'echo 2.0.0'),
    version: () => readFileSync(executable, 'utf8').match(/\d\S+/)![0],
    asked: () => readFileSync(asked, 'utf8').trim().split('\n').slice(1),
    upgrade: async (...args: string[]) => {
      const env = { PATH: `${folder}:${process.env.PATH}`, HOME: folder }
      const run = await runInProcess(['service', 'upgrade', '--user', ...args], env)
      return { ...run, said: run.stdout.toString() }
    },
  }
}
const restarted = `serves ${process.pid}`

test('a service that runs without a server is restarted, and the command says so', async () => {
  const { upgrade, asked } = machine({ isRunning: false, tryRestart: restarted })
  const { exitCode, said } = await upgrade('--or-restart', '--json')
  expect([exitCode, JSON.parse(said)]).toEqual([0, { pid: process.pid, previous_pid: null }])
  expect(asked()).toEqual(['--user try-restart infer.service'])
})

test('a stopped service is not started, and the command says how', async () => {
  const { upgrade, dataDir } = machine({ isRunning: false })
  expect(JSON.parse((await upgrade('--or-restart', '--json')).said)).toEqual({ pid: null, previous_pid: null })
  const { exitCode, said } = await upgrade('--or-restart')
  expect(exitCode).toBe(0)
  expect(said).toBe(
    `No server runs on ${dataDir}, and the service is stopped, so nothing was restarted. Start it: systemctl --user start infer\n`,
  )
})

test('the executable is replaced also where no server runs', async () => {
  const { upgrade, next, version } = machine({ isRunning: false, tryRestart: restarted })
  const { said } = await upgrade('--or-restart', '--executable', next)
  expect(said).toContain(`The service was restarted (process ${process.pid}).`)
  expect(version()).toBe('2.0.0')
})

test('a service whose server cannot hand over is restarted with the new executable', async () => {
  const { upgrade, next, pid, version } = machine({ tryRestart: restarted })
  const { exitCode, said } = await upgrade('--or-restart', '--json', '--executable', next)
  expect([exitCode, JSON.parse(said)]).toEqual([0, { pid: process.pid, previous_pid: pid }])
  expect(version()).toBe('2.0.0')
})

test('where the restart fails too, the old executable is put back and started', async () => {
  const { upgrade, asked, next, version } = machine({ tryRestart: 'fail "Job for infer.service failed."' })
  const { exitCode, said, stderr } = await upgrade('--or-restart', '--executable', next)
  expect([exitCode, said]).toEqual([1, ''])
  expect(stderr).toContain('The new version does not start, so the old executable was put back and started: ')
  expect(stderr).toContain('Job for infer.service failed.')
  expect(version()).toBe('1.0.0')
  expect(asked()).toEqual(['--user try-restart infer.service', '--user start infer.service'])
})

test('where the old executable does not start either, the command says so', async () => {
  const { upgrade, next, version } = machine({ tryRestart: 'fail one', start: 'fail two' })
  const { exitCode, stderr } = await upgrade('--or-restart', '--executable', next)
  expect([exitCode, version()]).toEqual([1, '1.0.0'])
  expect(stderr).toContain('nor does the old executable, which was put back: ')
  expect(stderr).toContain('two')
})

test('a server that is no part of the service is not restarted with it', async () => {
  const { upgrade, next, version } = machine()
  const { exitCode, said, stderr } = await upgrade('--or-restart', '--executable', next)
  expect([exitCode, said, version()]).toEqual([1, '', '1.0.0'])
  expect(stderr).toContain('is no part of the service')
})
