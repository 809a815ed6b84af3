import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tinyChat } from '../../../bin/tiny-chat.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

test('without infer.yaml the check says which models are offered instead, and what to do', async () => {
  const folder = temporaryFolder()
  const said = await infer(['config', 'check', '--data-dir', folder])
  expect([said.exitCode, said.stdout]).toEqual([
    0,
    `There is no ${join(folder, 'infer.yaml')}, so the server offers the models that ship with infer. 'infer model add' creates the file.\n`,
  ])
  expect(json(await infer(['config', 'check', '--data-dir', folder, '--json']))).toEqual({
    path: null,
    models: [],
    warnings: [],
  })
})

test('a file named on the command line must exist', async () => {
  const said = await infer(['config', 'check', join(temporaryFolder(), 'other.yaml')])
  expect(said.exitCode).not.toBe(0)
  expect(said.stderr).toContain('other.yaml')
})

test('sandbox paths that do not exist and settings without effect are warnings, and the file is valid', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'infer.yaml')
  const entry = (id: string, more: string) => `  - {id: ${id}, engine: custom, command: [serve, '{socket}'], ${more}}`
  const models = [
    entry('a', `sandbox_read: [${folder}, /no/such/folder], sandbox_write: [/dev/no-such-device]`),
    entry('b', 'sandbox: none, sandbox_read: [/no/such/other]'),
  ]
  writeFileSync(file, `limits: {engine_turn: 20s}\nmodels:\n${models.join('\n')}\n`)
  const said = await infer(['config', 'check', file])
  expect([said.exitCode, said.stdout]).toEqual([0, `${file} is valid: 2 models.\n`])
  expect(said.stderr).toContain('limits.engine_turn has no effect: limits.order_bound has replaced it.')
  expect(said.stderr).toContain("'sandbox_read' of 'a' names /no/such/folder, which does not exist here")
  expect(said.stderr).toContain("'sandbox_write' of 'a' names /dev/no-such-device, which does not exist here")
  expect(said.stderr).not.toContain(`${folder},`)
  expect(said.stderr).not.toContain('/no/such/other')
  expect(json(await infer(['config', 'check', file, '--json']))).toEqual({
    path: file,
    models: ['a', 'b'],
    warnings: [
      expect.stringContaining('/no/such/folder'),
      expect.stringContaining('/dev/no-such-device'),
      expect.stringContaining('limits.engine_turn'),
    ],
  })
})

test('models whose files cannot be loaded as configured are errors with their places', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'infer.yaml')
  const source = join(folder, 'chat.gguf')
  writeFileSync(source, tinyChat())
  const models = [
    `{id: gone, source: ${folder}/none.gguf}`,
    `{id: off, source: ${folder}/none.gguf, enabled: false}`,
    `{id: long, source: ${source}, context_length: 5000}`,
    `{id: server, engine: llama-server, source: ${source}, context_length: 5000}`,
  ]
  writeFileSync(file, `models:\n${models.map(one => `  - ${one}\n`).join('')}`)
  const said = await infer(['config', 'check', file])
  expect([said.exitCode, said.stdout]).toEqual([65, ''])
  expect(said.stderr).toContain(`${file}:2:16: Model 'gone': '${folder}/none.gguf' does not exist.`)
  expect(said.stderr).toMatch(/4:\d+: Model 'long': A context of 5000 tokens is above the 4096/)
  expect(said.stderr).not.toMatch(/Model '(off|server)'/)
  writeFileSync(file, `models:\n  - ${models.at(-1)}\n`)
  const warned = await infer(['config', 'check', file])
  expect([warned.exitCode, warned.stdout]).toEqual([0, `${file} is valid: one model.\n`])
  expect(warned.stderr).toContain("Model 'server': A context of 5000 tokens")
})

test('models that are bound to GPUs of others are errors, and unknown GPUs of the server warnings', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'infer.yaml')
  installNvidiaSmi(folder, { cards: `echo '${cardLine()}'; echo '${cardLine({ index: 1, uuid: 'GPU-2' })}'` })
  const check = (devices: string, own: number) => {
    const model = `{id: a, engine: custom, command: [serve, '{socket}'], devices: [${own}]}`
    writeFileSync(file, `devices: ${devices}\nmodels:\n  - ${model}\n`)
    return infer(['config', 'check', file], {
      env: { PATH: `${folder}:${process.env.PATH}`, CUDA_VISIBLE_DEVICES: '0' },
    })
  }
  const said = await check('[0]', 1)
  expect(said.exitCode).toBe(65)
  expect(said.stderr).toContain("'a' is to use the GPU '1' (devices). gpu1 is left to others (CUDA_VISIBLE_DEVICES=0).")
  const valid = await check('[0, 5]', 0)
  expect([valid.exitCode, valid.stderr]).toEqual([0, expect.stringContaining("the GPU '5', which this machine")])
})
