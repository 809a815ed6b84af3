import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const folder = resolve('build/python')
const uv = 'uv==0.13.9'

/** litellm and llama-index need an older client of OpenAI than the others, so there are two environments. */
export type Requirements = 'requirements' | 'requirements-openai-2'

/**
 * Returns the Python of a virtual environment with the packages of a list, which is made once and kept in build/. Returns
 * the reason instead when this machine has no Python or cannot reach the package index. Throws when a list is wrong.
 */
export async function pythonWith(requirements: Requirements): Promise<{ python: string } | { reason: string }> {
  const list = join(import.meta.dirname, `${requirements}.txt`)
  const environment = join(folder, `${requirements}-${hash('sha256', readFileSync(list)).slice(0, 12)}`)
  const python = join(environment, 'bin/python')
  const complete = join(environment, 'complete')
  if (existsSync(complete)) return { python }
  try {
    const installer = await installedUv()
    await run(installer, ['venv', '--quiet', '--clear', '--python', 'python3', environment])
    await run(installer, ['pip', 'install', '--quiet', '--python', python, '--requirements', list])
    writeFileSync(complete, '')
    return { python }
  } catch (cause) {
    const reason = String((cause as { stderr?: string }).stderr || cause).trim()
    if (isMissing(reason)) return { reason }
    throw new Error(`The packages of ${list} could not be installed:\n${reason}`, { cause })
  }
}

/** Whether it is the machine and not the list that is wrong. */
const isMissing = (reason: string): boolean =>
  /ENOENT|ensurepip|No (interpreter|module)|dns error|name resolution|error sending request|Failed to fetch|unreachable|timed? ?out|Connection (refused|reset)/i.test(
    reason,
  )

async function installedUv(): Promise<string> {
  const own = join(folder, 'uv')
  const program = join(own, 'bin/uv')
  if (existsSync(program)) return program
  rmSync(own, { recursive: true, force: true })
  await run('python3', ['-m', 'venv', own])
  await run(join(own, 'bin/python'), ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', uv])
  return program
}
