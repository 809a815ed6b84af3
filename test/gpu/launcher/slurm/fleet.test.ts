import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { InspectionFinding } from '../../../../core/inspection.ts'
import type { SlurmPool } from '../../../../core/models/pools.ts'
import { openSlurmLauncher } from '../../../../gpu/launcher/slurm/slurm.ts'
import { checkPool } from '../../../../gpu/pool-checks/check-pool.ts'
import { chat, fake, fleetOf } from '../../_fleet.ts'
import { keptLog, temporary, until } from '../_launch.ts'
import { type Lab, noLab, startLab } from './_lab.ts'
import { slurmSettings } from './_server.ts'

describe.skipIf(noLab !== undefined)(`models of a Slurm pool${noLab ? ` (${noLab})` : ''}`, () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab()
  }, 30_000)
  afterAll(() => lab.close(), 30_000)

  test('a model answers from a job, and unloading it ends the job', async () => {
    const model = fake('big', [], { pools: ['lab'], memory: '60GiB', devices: 1 })
    const { fleet } = await fleetOf([model], {
      pools: { lab: slurmSettings },
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
})
