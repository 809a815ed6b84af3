import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { InspectionFinding } from '../../../../core/inspection.ts'
import type { SlurmPool } from '../../../../core/models/pools.ts'
import { openSlurmLauncher } from '../../../../gpu/launcher/slurm/slurm.ts'
import { checkPool } from '../../../../gpu/pool-checks/check-pool.ts'
import { builtProgram } from '../../../_fixtures.ts'
import { full } from '../../../_full.ts'
import { openHub } from '../../../fixtures/hub.ts'
import { chat, fake, fleetOf } from '../../_fleet.ts'
import { editedImage, workerOf } from '../_generation.ts'
import { keptLog, temporary, until } from '../_launch.ts'
import { type Lab, noLab, startLab } from './_lab.ts'
import { isReady, listed, newServer, openAt, slurmOptions, slurmSettings } from './_server.ts'

describe.skipIf(noLab !== undefined)(`models of a Slurm pool${noLab ? ` (${noLab})` : ''}`, () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab()
  })
  afterAll(() => lab.close(), 30_000)

  test('a model answers from a job, and unloading it ends the job', async () => {
    const model = fake('big', [], { pools: ['lab'], memory: '60GiB', devices: 1 })
    const { fleet } = await fleetOf([model], {
      pools: () => ({ lab: slurmSettings }),
      environment: lab.env,
      openPoolLauncher: options => openSlurmLauncher({ ...options, settings: slurmSettings }),
    })
    expect((await chat(fleet, model)).text).toContain('Hello')
    const [engine] = fleet.snapshot().residents
    expect(engine).toMatchObject({
      pool: 'lab',
      devices: [expect.stringMatching(/^lab\/gpu[123]\/gpu[01]$/) as string],
    })
    expect(lab.run('squeue', '-h', '-o', '%T %b')).toBe('RUNNING gres:gpu:1')
    await fleet.unload('big')
    await until(() => lab.run('squeue', '-h') === '')
  })

  test('the Python worker edits an image in a job, and needs no folder of the server', async () => {
    const { bin, image, model } = await workerOf('lab')
    const { fleet } = await fleetOf([model], {
      pools: () => ({ lab: slurmSettings }),
      environment: { ...lab.env, PATH: `${bin}:${lab.env.PATH}` },
      openPoolLauncher: options => openSlurmLauncher({ ...options, settings: slurmSettings }),
    })
    expect(await editedImage(fleet, model, image)).toEqual({ width: 32, height: 16 })
  })

  test.runIf(full)(
    'a job that reaches its time limit is succeeded before, and no request fails',
    async () => {
      const model = fake('big', [], { pools: [{ pool: 'lab', time_limit: '1m' }], memory: '60GiB', devices: 1 })
      const { fleet } = await fleetOf([model], {
        pools: () => ({ lab: slurmSettings }),
        environment: lab.env,
        openPoolLauncher: options => openSlurmLauncher({ ...options, settings: slurmSettings }),
      })
      const begun = Date.now()
      const engines = new Set<string>()
      const failed: string[] = []
      let answers = 0
      while (Date.now() - begun < 100_000) {
        const { failure, text } = await chat(fleet, model)
        answers++
        if (failure || !text.includes('Hello')) failed.push(`${Date.now() - begun} ms: ${failure?.message}`)
        for (const { engineId } of fleet.snapshot().residents) engines.add(engineId)
      }
      expect(failed).toEqual([])
      expect(answers).toBeGreaterThan(1_000)
      expect(engines.size).toBeGreaterThanOrEqual(3)
    },
    150_000,
  )
  test.runIf(full)('a node fails while a model loads there: who waits gets an answer of another node', async () => {
    const of = { pools: ['lab'], memory: '60GiB', devices: 1, load_timeout: '9s' }
    const model = fake('big', ['--ready-after', '8000'], of)
    const { fleet } = await fleetOf([model], {
      pools: () => ({ lab: slurmSettings }),
      environment: lab.env,
      openPoolLauncher: options => openSlurmLauncher({ ...options, settings: slurmSettings }),
    })
    const answer = chat(fleet, model)
    const nodeOf = () => /machine (gpu\d)/.exec(fleet.snapshot().residents[0]?.placement.detail ?? '')?.[1]
    await until(() => nodeOf() !== undefined)
    const node = nodeOf()!
    const { engineId } = fleet.snapshot().residents[0]!
    // Before its wrapper was heard for the first time nobody can say that it is silent.
    await until(() => {
      const port = / run \S+ (\d+)/.exec(lab.jobOf(`${engineId}-1`)?.[3] ?? '')?.[1]
      return port !== undefined && isConnectedTo(Number(port))
    })
    await lab.failNode(node)
    expect((await answer).text).toContain('Hello')
    expect(nodeOf()).not.toBe(node)
    lab.node(node)
    await lab.returned(node)
  })

  test('doctor finds what a pool needs, by a short job that leaves nothing behind', async () => {
    const dataDir = temporary()
    const model = fake('big', [], { pools: ['lab'], devices: 2, source: '/no/such/model' })
    const check = async (settings: SlurmPool) => {
      const found: InspectionFinding[] = []
      const options = { pool: 'lab', settings, models: [model], dataDir, environment: lab.env, log: keptLog() }
      for await (const finding of checkPool(options)) found.push(finding)
      return new Map(found.map(one => [one.name, one]))
    }
    const found = await check(slurmSettings)
    expect([...found.values()].filter(({ state }) => state !== 'fine')).toEqual([
      expect.objectContaining({ name: 'files there', detail: expect.stringMatching(/not have .*model/) as string }),
    ])
    expect([...found.keys()]).toEqual([
      'Slurm commands',
      'partition',
      'GPUs',
      'job',
      'trial job',
      'files there',
      'data directory',
    ])
    expect(readdirSync(dataDir)).toEqual([])
    await until(() => lab.run('squeue', '-h') === '')

    const wrong = { ...slurmSettings, partition: 'none', gres: 'tpu' }
    const faults = await check(wrong)
    for (const name of ['partition', 'GPUs', 'job', 'trial job']) expect(faults.get(name)?.state, name).toBe('broken')
  })

  test('a job downloads its model to the cache of the node before its engine starts', async () => {
    const hub = await openHub({ 'o/m': { files: { 'm.gguf': randomBytes(100_000) } } })
    onTestFinished(() => hub.close())
    const [server, cache] = [newServer(), temporary()]
    const executable = join(cache, 'infer')
    writeFileSync(executable, `#!/bin/sh\nexec '${process.execPath}' '${builtProgram}' "$@"\n`, { mode: 0o755 })
    const environment = { ...lab, env: { ...lab.env, HF_ENDPOINT: hub.endpoint } }
    const launcher = await openAt(environment, server, { executable, model_cache: cache })
    const source = `/nowhere/models--o--m/snapshots/${hub.commitOf('o/m')}/m.gguf`
    const launchId = `wkr_${process.pid}fetch-1`
    const script = 'test -f "$1" && shift && exec "$@"'
    const argv = ['/bin/sh', '-c', script, 'sh', source, ...slurmOptions(launchId, []).argv]
    await launcher.start(slurmOptions(launchId, [], { argv, source }), AbortSignal.timeout(20_000))
    await listed(launcher, launchId, isReady)
    expect(readdirSync(join(cache, 'models--o--m/snapshots', hub.commitOf('o/m')))).toEqual(['m.gguf'])
    await launcher.stop(launchId, 0, AbortSignal.timeout(20_000))
  })
})

/** Whether a connection to this port of this machine is open. */
const isConnectedTo = (port: number): boolean =>
  readFileSync('/proc/net/tcp', 'latin1').includes(`:${port.toString(16).toUpperCase().padStart(4, '0')} 01 `)
