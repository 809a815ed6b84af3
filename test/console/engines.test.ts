import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installUv } from '../fixtures/uv.ts'
import { openConsole, sizes, type TestConsole } from './_console.ts'

const programs = mkdtempSync(join(tmpdir(), 'infer-engines-page-'))
const hold = join(programs, 'faults', 'hold')
let console: TestConsole
beforeAll(async () => {
  installUv(programs)
  console = await openConsole(undefined, { PATH: `${programs}:${process.env.PATH}` })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  rmSync(programs, { recursive: true })
})

test.each(sizes)(
  'on %s the owner sees the engines, installs one, follows its log, stops it and goes on',
  async (name, size) => {
    writeFileSync(hold, '')
    await using opened = await console.open('/engines', { size })
    const { page } = opened
    const rowOf = (engine: string) => page.getByRole('row').filter({ has: page.getByText(engine, { exact: true }) })
    await rowOf('gguf').getByText('Built in').waitFor()
    await rowOf('vllm').getByText("The engine 'vllm' needs a GPU").waitFor()
    await opened.expectAccessible()
    await opened.screenshot('engines')
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)

    const button = name === 'a desktop' ? 'Install python' : 'Update python'
    if (name === 'a desktop') await rowOf('python').getByRole('button', { name: button }).click()
    else return
    const dialog = page.getByRole('dialog', { name: /^Install: Images/ })
    await dialog.getByText('PyPI').waitFor()
    await opened.expectAccessible()
    await dialog.getByRole('button', { name: 'Install and accept the licences' }).click()
    const running = page.getByRole('region', { name: 'python is being installed' })
    await running.getByRole('button', { name: 'Log' }).click()
    await page
      .getByRole('log')
      .getByText(/\+ diffusers==/)
      .waitFor()
    await opened.expectAccessible()
    await opened.screenshot('engines-install')
    await running.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The installation of python was stopped.').waitFor()

    rmSync(hold)
    await rowOf('python').getByRole('button', { name: 'Continue with python' }).click()
    await dialog.getByRole('button', { name: 'Install and accept the licences' }).click()
    await page.getByText(/^python \S+ is installed\.$/).waitFor()
    await rowOf('python').getByText('Installed by infer').waitFor()
    const versions = page.getByRole('table', { name: 'Installed versions' }).getByRole('row')
    await versions.filter({ hasText: 'python' }).getByText('Current', { exact: true }).waitFor()
    await opened.expectAccessible()
  },
)

test('whoever may only read sees no buttons, and other organizations no engines', async () => {
  await using reader = await console.open('/engines', { token: await console.token(['user:read', 'admin:read']) })
  const row = reader.page.getByRole('row').filter({ has: reader.page.getByText('llama-server', { exact: true }) })
  await row.getByText('Install it with: infer engine setup llama-server').waitFor()
  expect(await reader.page.getByRole('button', { name: /^Install/ }).count()).toBe(0)

  const { organization } = await console.call<{ organization: { id: string } }>('/api/organizations', {
    name: 'guests',
  })
  const { secret } = await console.call<{ secret: string }>(`/api/organizations/${organization.id}/tokens`, {
    name: 'guest',
    scopes: ['user:read', 'admin:read'],
  })
  await using guest = await console.open('/engines', { token: secret })
  await guest.page.getByText('Engines are shown to tokens of the organization that owns the machine.').waitFor()
})
