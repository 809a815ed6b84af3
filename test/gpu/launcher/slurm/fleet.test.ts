import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSlurmLauncher } from '../../../../gpu/launcher/slurm/slurm.ts'
import { full } from '../../../_full.ts'
import { chat, fake, fleetOf } from '../../_fleet.ts'
import { until } from '../_launch.ts'
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

  test.runIf(full)(
    'a job that reaches its time limit is succeeded before, and no request fails',
    async () => {
      const model = fake('big', [], { pools: [{ pool: 'lab', time_limit: '1m' }], memory: '60GiB', devices: 1 })
      const { fleet } = await fleetOf([model], {
        pools: { lab: slurmSettings },
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
})
