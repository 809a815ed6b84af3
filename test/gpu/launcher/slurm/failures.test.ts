import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Launch, Launcher } from '../../../../gpu/launcher/launcher.ts'
import { fetchHealth } from '../../../../gpu/requests/health.ts'
import { full } from '../../../_full.ts'
import { fakeEngine, survivors, temporary, until } from '../_launch.ts'
import { type Lab, noLab, startLab } from './_lab.ts'
import { isReady, listed, newServer, openAt, slurmOptions } from './_server.ts'

const signal = () => AbortSignal.timeout(30_000)
const isGone = ({ state }: Launch) => state === 'gone'

let count = 0
const newId = () => `wkr_${process.pid}f${++count}-1`

describe.skipIf(noLab !== undefined)(`engines as Slurm jobs, when something fails${noLab ? ` (${noLab})` : ''}`, () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab()
  })
  afterAll(() => lab.close(), 30_000)

  /** A launcher of a new server. */
  const open = (changes: Parameters<typeof openAt>[2] = {}, path = '') => openAt(lab, newServer(), changes, path)

  /** Starts a fake engine, which answers then. */
  async function started(launcher: Launcher, flags: readonly string[] = [], more = {}) {
    const launchId = newId()
    await launcher.start(slurmOptions(launchId, flags, more), signal())
    const launch = await listed(launcher, launchId, isReady)
    return { launchId, launch, jobId: lab.jobOf(launchId)![0]! }
  }

  /** Occupies every card with a job of somebody else until the test is over. */
  const occupyAllCards = (...more: string[]): void => occupyCards(['gpu1', 'gpu2', 'gpu3'], ...more)
  function occupyCards(nodes: readonly string[], ...more: string[]): void {
    const jobId = lab.run(
      'sbatch',
      '--parsable',
      `--nodes=${nodes.length}`,
      `--nodelist=${nodes.join(',')}`,
      '--gres=gpu:2',
      '--output=/dev/null',
      ...more,
      '--wrap=sleep 600',
    )
    onTestFinished(async () => {
      lab.run('scancel', jobId)
      await until(() => lab.run('squeue', '-h', '-j', jobId) === '')
    })
  }

  test.runIf(full)(
    'a slurmctld that is killed and restarted: nothing is known meanwhile, and nothing is ended',
    async () => {
      const launcher = await open()
      const { launchId, launch } = await started(launcher)
      // It saves what it knows every few seconds.
      const readyAt = Date.now()
      await until(() => statSync(join(lab.folder, 'state/job_state')).mtimeMs > readyAt)
      await lab.kill('slurmctld', 'SIGKILL')
      await expect(launcher.list(signal())).rejects.toThrow(/squeue does not tell the jobs of the pool 'lab'/)
      await expect(launcher.start(slurmOptions(newId(), []), signal())).rejects.not.toMatchObject({
        code: 'worker_error',
      })
      expect(await isReady(launch)).toBe(true)
      lab.controller()
      const after = await listed(launcher, launchId, isReady)
      expect(after).toMatchObject({ state: 'running', endpoint: launch.endpoint })
    },
  )

  test.runIf(full)('a job that somebody else cancels is gone, with everything of it', async () => {
    const launcher = await open()
    const { launchId, jobId } = await started(launcher, ['--grandchild', '--ignore-term'])
    lab.run('scancel', jobId)
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ reason: 'Its Slurm job was cancelled.' })
    expect(await survivors(launchId)).toEqual([])
  })

  test.runIf(full)(
    'a node that fails: its engine cannot be reached at once, another one starts elsewhere, and Slurm says later that it is gone',
    async () => {
      const launcher = await open()
      const { launchId, launch } = await started(launcher)
      const { node } = launch
      await lab.failNode(node!)
      const failedAt = performance.now()
      expect(await listed(launcher, launchId, one => one.isUnreachable === true)).toMatchObject({ state: 'running' })
      expect(performance.now() - failedAt).toBeLessThan(3_000)
      const other = await started(launcher)
      expect(other.launch.node).not.toBe(node)
      const gone = await listed(launcher, launchId, isGone)
      expect(gone).toMatchObject({ reason: `Its node '${node}' has failed.`, status: null })
      expect(await survivors(launchId)).toEqual([])
      lab.node(node!)
      await lab.returned(node!)
    },
  )

  const waits = 'a job that waits for others than an unreachable node may run there when it is back'
  test.runIf(full)(waits, async () => {
    const launcher = await open()
    const { launchId, launch } = await started(launcher)
    const { node } = launch
    await lab.failNode(node!)
    await listed(launcher, launchId, one => one.isUnreachable === true)
    occupyCards(['gpu1', 'gpu2', 'gpu3'].filter(one => one !== node))
    const other = newId()
    await launcher.start(slurmOptions(other, []), signal())
    expect(lab.run('scontrol', 'show', 'job', lab.jobOf(other)![0]!)).toContain(`ExcNodeList=${node}`)
    await listed(launcher, launchId, isGone)
    lab.node(node!)
    expect((await listed(launcher, other, isReady)).node).toBe(node)
  })

  test.runIf(full)('a job whose cards Slurm gives to another is gone, and is not queued again', async () => {
    const launcher = await open({ partition: 'scavenge' })
    const { launchId } = await started(launcher)
    occupyAllCards('--partition=gpu')
    const { reason } = await listed(launcher, launchId, isGone)
    expect(reason).toBe('Slurm gave its cards to a job of higher priority.')
    expect(await survivors(launchId)).toEqual([])
  })

  test('a job that an administrator starts again does not become an engine again', async () => {
    const launcher = await open()
    const { launchId, jobId } = await started(launcher)
    lab.run('scontrol', 'update', `JobId=${jobId}`, 'Requeue=1')
    lab.run('scontrol', 'requeue', jobId)
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ reason: 'Slurm has queued its job again.' })
    await until(() => lab.jobOf(launchId)![1] === 'CANCELLED')
    expect(await survivors(launchId)).toEqual([])
  })

  test.runIf(full)('a node that is drained keeps its engine, and counts no more', async () => {
    const launcher = await open({ extra: ['--nodelist=gpu2'] })
    const { launchId } = await started(launcher)
    const before = await launcher.capacity(signal())
    expect(before.devices.map(({ id }) => id)).toContain('gpu2/gpu1')
    lab.run('scontrol', 'update', 'NodeName=gpu2', 'State=DRAIN', 'Reason=test')
    onTestFinished(() => void lab.run('scontrol', 'update', 'NodeName=gpu2', 'State=RESUME'))
    const { devices } = await launcher.capacity(signal())
    expect(devices.map(({ id }) => id)).toEqual(['gpu1/gpu0', 'gpu1/gpu1', 'gpu3/gpu0', 'gpu3/gpu1'])
    expect(await listed(launcher, launchId, isReady)).toMatchObject({ state: 'running', node: 'gpu2' })
  })

  test('a job that waits says why, and is cancelled before it runs', async () => {
    const launcher = await open()
    occupyAllCards()
    const launchId = newId()
    await launcher.start(slurmOptions(launchId, []), signal())
    const { reason, endpoint } = await listed(launcher, launchId, one =>
      /\((Resources|Priority)\)/.test(one.reason ?? ''),
    )
    expect(reason).toMatch(/^It waits for Slurm: .+\.$/)
    expect(endpoint).toBeNull()
    await launcher.stop(launchId, 60_000, signal())
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ status: null })
  })

  test("a job that Slurm refuses is refused with Slurm's words, and nothing is listed", async () => {
    const launcher = await open({ partition: 'nope' })
    await expect(launcher.start(slurmOptions(newId(), []), signal())).rejects.toMatchObject({
      code: 'worker_error',
      message: "Slurm has refused the job of 'fake': Invalid partition name specified.",
    })
    expect(await launcher.list(signal())).toEqual([])
  })

  test('a start of which nobody knows whether it was accepted makes one job', async () => {
    const folder = temporary()
    const script = `#!/bin/sh
/usr/bin/sbatch "$@" >/dev/null
echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
exit 1
`
    writeFileSync(join(folder, 'sbatch'), script, { mode: 0o755 })
    const launcher = await open({}, folder)
    const launchId = newId()
    const options = slurmOptions(launchId, [])
    await expect(launcher.start(options, signal())).rejects.toThrow(/not known whether Slurm has accepted/)
    await launcher.start(options, signal())
    await listed(launcher, launchId, isReady)
    expect(lab.run('squeue', '-h', '-o', '%k').match(new RegExp(launchId, 'g'))).toHaveLength(1)
  })

  test('two pools of one server on one cluster leave the jobs of each other alone', async () => {
    const server = newServer()
    const [one, other] = [await openAt(lab, server), await openAt(lab, { ...server, pool: 'other' })]
    const [first, second] = await Promise.all([started(one), started(other)])
    expect((await one.list(signal())).map(({ launchId }) => launchId)).toEqual([first.launchId])
    expect((await other.list(signal())).map(({ launchId }) => launchId)).toEqual([second.launchId])
    expect([await isReady(first.launch), await isReady(second.launch)]).toEqual([true, true])
  })

  test.runIf(full)('two servers on one cluster see and end only what is their own', async () => {
    const [one, other] = [await open(), await open()]
    const [first, second] = await Promise.all([started(one), started(other)])
    expect((await one.list(signal())).map(({ launchId }) => launchId)).toEqual([first.launchId])
    await one.stop(second.launchId, 0, signal())
    await one.close()
    await until(async () => (await survivors(first.launchId)).length === 0)
    expect(await isReady(second.launch)).toBe(true)
  })

  test.runIf(full)('a server whose records are lost ends the jobs that it cannot call any more', async () => {
    const server = newServer()
    const before = await openAt(lab, server)
    const { launchId } = await started(before)
    await before.leave()
    rmSync(join(server.dataDir, 'slurm'), { recursive: true })
    const next = await openAt(lab, server)
    expect(await next.list(signal())).toEqual([])
    await until(async () => (await survivors(launchId)).length === 0)
  })

  test.runIf(full)('a node that does not share the data directory runs an engine too, without its output', async () => {
    const server = newServer()
    const launcher = await openAt(lab, server)
    rmSync(join(server.dataDir, 'slurm/lab/marker'))
    const { launchId } = await started(launcher, ['--exit', '3', '--exit-after', '600'])
    expect(await listed(launcher, launchId, isGone)).toMatchObject({ status: '3' })
    for await (const piece of launcher.logs(launchId, 0, signal())) expect(piece).toBeUndefined()
    const outputs = slurmOptions(newId(), [], {
      argv: [process.execPath, fakeEngine, '--socket', '{socket}', '{outputs}'],
    })
    await launcher.start(outputs, signal())
    expect(await listed(launcher, outputs.launchId, isGone)).toMatchObject({
      status: '127',
      reason: 'This engine needs the data directory of the server, which its node does not share.',
    })
  })

  test('others on the cluster read no key, and cannot call the engine', async () => {
    const launcher = await open()
    const env = { SOME_TOKEN: 'a-secret-of-it' }
    const { launchId, launch, jobId } = await started(launcher, [], { env })
    const { origin, tls } = launch.endpoint!
    const { hostname, port } = new URL(origin)
    const secrets = [env.SOME_TOKEN, tls!.key.split('\n')[1]!]
    const lines = readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(pid => readIfThere(`/proc/${pid}/cmdline`))
    const open_ = [
      lab.run('scontrol', 'show', 'job', '-d', jobId),
      lab.run('squeue', '-h', '-O', 'Command:999,Comment:999'),
      ...lines,
    ]
    for (const text of open_) for (const secret of secrets) expect(text).not.toContain(secret)
    // Without the key, and with another one.
    expect((await fetchHealth({ origin }, '/health', [], 2_000)).health).toBe('loading')
    const answered = await new Promise<boolean>(resolve => {
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
      socket.on('secureConnect', () => socket.write('GET /health HTTP/1.1\r\nhost: x\r\n\r\n'))
      socket.on('data', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('close', () => resolve(false))
    })
    expect(answered).toBe(false)
    expect(await isReady(launch)).toBe(true)
    // Nothing of it stays on the node.
    const [pid] = await survivors(launchId)
    const folder = /TMPDIR=([^\0]+)\/tmp\0/.exec(readFileSync(`/proc/${pid}/environ`, 'latin1'))![1]!
    expect(existsSync(folder)).toBe(true)
    await launcher.stop(launchId, 0, signal())
    await listed(launcher, launchId, isGone)
    expect(existsSync(folder)).toBe(false)
  })

  test.runIf(full)('an engine on a port is called by its key, and refused without one', async () => {
    const launcher = await open()
    const onPort = { channel: 'port' as const, argv: [process.execPath, fakeEngine, '--port', '{port}'] }
    await expect(launcher.start(slurmOptions(newId(), [], onPort), signal())).rejects.toMatchObject({
      code: 'worker_error',
      message: expect.stringContaining('has no key') as string,
    })
    const headers = ['authorization', 'Bearer of-this-launch']
    await started(launcher, [], { ...onPort, headers, env: { API_KEY: 'of-this-launch' } })
  })

  test.runIf(full)('an engine whose time is over is gone', async () => {
    const launcher = await open({ time_limit: 60_000 })
    const { launchId, launch } = await started(launcher)
    expect(launch.endsAt! - Date.now()).toBeLessThan(60_000)
    expect(await listed(launcher, launchId, isGone)).toMatchObject({
      reason: 'The time limit of its Slurm job was reached.',
    })
    expect(await survivors(launchId)).toEqual([])
  })
})

const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
