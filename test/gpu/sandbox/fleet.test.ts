import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { presetOf } from '../../../gpu/presets/presets.ts'
import type { SandboxSupport } from '../../../gpu/sandbox/level.ts'
import { chat, fake, fleetOf } from '../_fleet.ts'
import { temporary } from '../launcher/_launch.ts'
import { toolsHere } from './_tools.ts'

const repository = join(import.meta.dirname, '../../..')
const none: SandboxSupport = { tool: null, why: 'bwrap is not installed' }

test('a model whose configured sandbox cannot be enforced is unavailable, with the reason', async () => {
  const model = fake('confined', [], { sandbox: 'files' })
  const { fleet } = await fleetOf([model], { sandbox: none })
  const message =
    "The sandbox 'files' of 'confined' cannot be enforced on this machine: bwrap is not installed. Run infer doctor, or change 'sandbox' in infer.yaml."
  await expect(fleet.load(model)).rejects.toMatchObject({ code: 'no_capacity', message })
  await expect(fleet.lease(model, { waitMs: 10_000 })).rejects.toMatchObject({ message })
  expect(fleet.activity(model.id)).toMatchObject({ status: 'unavailable', reason: message, engineStarts: 0 })
})

test('a model without a configured sandbox runs without one, and the log says so', async () => {
  const model = fake('open')
  const { fleet, log } = await fleetOf([model], { sandbox: none })
  expect((await chat(fleet, model)).text).toContain('Hello')
  expect(log.lines).toContainEqual(
    expect.stringMatching(/^warn Engines run without a sandbox .*bwrap is not installed/),
  )
})

test('a sandbox path that does not exist is logged when the engine starts', async () => {
  const model = fake('sparse', [], { sandbox_read: ['/no/such/folder', repository], sandbox_write: ['/dev/null'] })
  const { fleet, log } = await fleetOf([model], { sandbox: none })
  expect((await chat(fleet, model)).text).toContain('Hello')
  const warnings = log.lines.filter(line => line.includes('sandbox_'))
  expect(warnings).toEqual([
    expect.stringMatching(
      /^warn 'sandbox_read' of 'sparse' names \/no\/such\/folder, which does not exist here, so its engine does not see it\./,
    ),
  ])
})

test('strict requires an engine that listens on a Unix socket', () => {
  const model = fake('port', [], { sandbox: 'strict', command: ['serve', '{port}'] })
  expect(() => presetOf(model)).toThrow("'sandbox: strict' allows no network, but this engine listens on a port")
  expect(() => presetOf({ ...model, engine: 'remote', url: 'http://x', command: undefined })).toThrow(
    "'sandbox' has no effect with the engine 'remote'",
  )
})

describe.each(toolsHere)('with $name', tool => {
  test('an engine without a network answers at its socket, and leaves no folder behind', async () => {
    const model = fake('strict', [], { sandbox: 'strict', sandbox_read: [repository] })
    const { fleet, dataDir } = await fleetOf([model], { sandbox: { tool } })
    expect((await chat(fleet, model)).text).toContain('Hello')
    expect(existsSync(join(dataDir, 'home', 'strict'))).toBe(true)
    expect(readdirSync(join(dataDir, 'work'))).toHaveLength(1)
    await fleet.unload(model.id)
    expect(readdirSync(join(dataDir, 'work'))).toEqual([])
  })

  test('an engine that does not find its files reports which path its sandbox lacks', async () => {
    const folder = join(temporary(), 'engine')
    mkdirSync(folder)
    const hidden = join(temporary(), 'program')
    for (const [path, text] of [
      [join(folder, 'serve'), `exec ${hidden}`],
      [hidden, 'exit 0'],
    ] as const)
      writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    const model = fake('lost', [], { command: ['/bin/sh', join(folder, 'serve'), '{socket}'] })
    const { fleet } = await fleetOf([model], { sandbox: { tool } })
    await expect(fleet.load(model)).rejects.toMatchObject({
      message: expect.stringMatching(
        /It ran in the sandbox 'files': add the paths that it needs to 'sandbox_read' or 'sandbox_write', or choose/,
      ) as string,
    })
    expect(fleet.snapshot().models.lost!.reason).not.toContain(hidden)
    // For the owner of the machine.
    expect(fleet.loads('lost')[0]!.reason).toContain(
      `It ran in the sandbox 'files', in which ${hidden} is absent: add it to 'sandbox_read'`,
    )
  })
})
