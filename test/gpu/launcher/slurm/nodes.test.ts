import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Model } from '../../../../core/models/model.ts'
import type { Launch, Launcher, LaunchOptions } from '../../../../gpu/launcher/launcher.ts'
import { openSlurmLauncher } from '../../../../gpu/launcher/slurm/slurm.ts'
import { fixtureProgram } from '../../../_fixtures.ts'
import { full } from '../../../_full.ts'
import { chat, fleetOf } from '../../_fleet.ts'
import { survivors, temporary, until } from '../_launch.ts'
import { type Lab, noLab, startLab } from './_lab.ts'
import { isReady, listed, newServer, openAt, slurmOptions, slurmSettings } from './_server.ts'

const signal = () => AbortSignal.timeout(30_000)
const isGone = ({ state }: Launch) => state === 'gone'

let count = 0

describe.skipIf(noLab !== undefined)(`engines that span nodes of Slurm${noLab ? ` (${noLab})` : ''}`, () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab()
  })
  afterAll(() => lab.close(), 30_000)

  test('a model that spans nodes answers, starts again after the end of a part, and leaves nothing when it is unloaded', async () => {
    const programs = temporary()
    const program = `#!/bin/sh\nexec '${process.execPath}' '${fixtureProgram('spanning-engine')}' --as vllm "$@"\n`
    writeFileSync(join(programs, 'vllm'), program, { mode: 0o755 })
    const common = { engine: 'vllm', pools: ['lab'], devices: 2, stop_grace: '2s', concurrency: 2 }
    const model = Model.parse({ ...common, id: 'wide', source: 'o/m', nodes: 2 })
    const wider = Model.parse({ ...common, id: 'wider', source: 'o/m', nodes: 4 })
    const { fleet, log } = await fleetOf([model, wider], {
      pools: () => ({ lab: slurmSettings }),
      environment: { ...lab.env, PATH: `${programs}:${lab.env.PATH}` },
      openPoolLauncher: options => openSlurmLauncher({ ...options, settings: slurmSettings }),
    })
    expect((await chat(fleet, model)).text).toContain('Hello')
    const [engine] = fleet.snapshot().residents
    expect(engine!.devices).toHaveLength(4)
    expect(engine!.placement.detail).toMatch(/^in the pool 'lab' on 2 nodes with 2 GPUs each, nodes gpu\[\d[-,]\d]$/)
    expect(lab.run('squeue', '-h', '-o', '%D %b')).toBe('2 gres:gpu:2')
    process.kill(partsOf(await survivors(`${engine!.engineId}-1`)).get(1)!, 'SIGKILL')
    await until(() =>
      log.lines.some(line =>
        /Engine exited \(SIGKILL\)\. Its part on the node 'gpu\d' has ended with SIGKILL\./.test(line),
      ),
    )
    expect((await chat(fleet, model)).text).toContain('Hello')
    expect(fleet.snapshot().residents.map(({ engineId }) => engineId)).not.toContain(engine!.engineId)
    expect(await fleet.plan(wider)).toMatchObject({
      status: 'refused',
      detail: "In the pool 'lab': 'wider' needs 4 nodes with 2 GPUs each; 3 have as many.",
    })
    await fleet.unload('wide')
    await until(() => lab.run('squeue', '-h') === '')
  })

  /** Starts an engine on so many nodes, which answers then. */
  async function started(
    launcher: Launcher,
    nodes: number,
    flags: readonly string[] = [],
    isUp: (launch: Launch) => boolean | Promise<boolean> = isReady,
  ) {
    const launchId = `wkr_${process.pid}n${++count}-1`
    const rank = ['--nnodes', '{nodes}', '--node-rank', '{node_rank}']
    const first = ['--master-addr', '{first_node}', '--master-port', '{first_node_port}']
    const argv = [
      process.execPath,
      fixtureProgram('spanning-engine'),
      '--socket',
      '{socket}',
      ...rank,
      ...first,
      ...flags,
    ]
    const needs = { nodes, cards: 2, cpus: 1, memoryBytes: 1 << 20, maxMs: null }
    const options: LaunchOptions = slurmOptions(launchId, [], { argv, needs, otherNodes: ['--headless'] })
    await launcher.start(options, signal())
    const launch = await listed(launcher, launchId, isUp)
    return { launchId, launch }
  }

  test('all parts meet, the first one answers, and a stop leaves nothing on any node', async () => {
    const launcher = await openAt(lab, newServer())
    const { launchId, launch } = await started(launcher, 3)
    expect(launch.node).toBe('gpu[1-3]')
    expect(lab.run('squeue', '-h', '-o', '%D %b')).toBe('3 gres:gpu:2')
    expect(await survivors(launchId)).toHaveLength(3)
    await launcher.stop(launchId, 5_000, signal())
    await listed(launcher, launchId, isGone)
    expect(await survivors(launchId)).toEqual([])
    let output = ''
    for await (const { bytes } of launcher.logs(launchId, 0, signal())) output += Buffer.from(bytes).toString()
    expect(output).toMatch(/^part 0 of 3 on gpu1 as [\d.]+$/m)
    expect(output).toMatch(/^rank 1: part 1 of 3 on gpu2 as [\d.]+, headless$/m)
    expect(output).toMatch(/^rank 2: part 2 of 3 on gpu3 as [\d.]+, headless$/m)
    await until(() => lab.run('squeue', '-h') === '')
  })

  test.runIf(full)('the end of any part ends all, and says where', async () => {
    const launcher = await openAt(lab, newServer())
    const { launchId, launch } = await started(launcher, 2, ['--exit-of', '1', '--ignore-term', '--grandchild'], isGone)
    expect(launch.reason).toMatch(/^Its part on the node 'gpu[23]' has ended with 7\.$/)
    expect(await survivors(launchId)).toEqual([])
    const next = await started(launcher, 2)
    process.kill(partsOf(await survivors(next.launchId)).get(1)!, 'SIGSEGV')
    const { reason } = await listed(launcher, next.launchId, isGone)
    expect(reason).toMatch(/^Its part on the node 'gpu[23]' has ended with SIGSEGV\.$/)
    expect(await survivors(next.launchId)).toEqual([])
    await until(() => lab.run('squeue', '-h') === '')
  })

  test.runIf(full).each([0, 1])('a wrapper that is killed, of the part %i, ends all', async rank => {
    const launcher = await openAt(lab, newServer())
    const { launchId } = await started(launcher, 2)
    const engine = partsOf(await survivors(launchId)).get(rank)!
    process.kill(parentOf(engine), 'SIGKILL')
    const { reason } = await listed(launcher, launchId, isGone)
    if (rank === 1) expect(reason).toBe('Its parts on other nodes have ended.')
    expect(await survivors(launchId)).toEqual([])
    await until(() => lab.run('squeue', '-h') === '')
  })

  test.runIf(full)('a node that fails ends all', async () => {
    const launcher = await openAt(lab, newServer())
    const { launchId, launch } = await started(launcher, 2)
    const last = `gpu${/(\d)]$/.exec(launch.node!)![1]}`
    const engine = partsOf(await survivors(launchId)).get(1)!
    await lab.kill(last, 'SIGKILL')
    // The node with all that runs there: slurmstepd and the wrapper too.
    const wrapper = parentOf(engine)
    for (const pid of [parentOf(wrapper), wrapper]) process.kill(pid, 'SIGKILL')
    const { reason } = await listed(launcher, launchId, isGone)
    expect(reason).toMatch(/^(One of its nodes 'gpu\[.*]' has failed|Its parts on other nodes have ended)\.$/)
    expect(await survivors(launchId)).toEqual([])
    lab.node(last)
    await lab.returned(last)
  })

  test.runIf(full)(
    'the next server takes over an engine of several nodes, and a cancelled job leaves nothing',
    async () => {
      const server = newServer()
      const before = await openAt(lab, server)
      const { launchId, launch } = await started(before, 2)
      await before.leave()
      const next = await openAt(lab, server)
      const found = await listed(next, launchId, isReady)
      expect(found.endpoint).toEqual(launch.endpoint)
      lab.run('scancel', lab.jobOf(launchId)![0]!)
      expect(await listed(next, launchId, isGone)).toMatchObject({ reason: 'Its Slurm job was cancelled.' })
      await until(async () => (await survivors(launchId)).length === 0)
    },
  )
})

const parentOf = (pid: number): number =>
  Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))![1])

/** The parts of an engine: process ids by rank. */
function partsOf(pids: readonly number[]): Map<number, number> {
  return new Map(
    pids.flatMap(pid => {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      const at = words.indexOf('--node-rank')
      return at < 0 ? [] : [[Number(words[at + 1]), pid] as const]
    }),
  )
}
