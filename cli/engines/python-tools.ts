import { join } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { indexVariables } from '../../core/models/package-index/find-package-file.ts'
import { findProgram } from '../../gpu/sandbox/program.ts'
import { runInstaller } from './run-installer.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The programs that make an environment and install packages into it. */
interface PythonTools {
  name: 'uv' | 'pip'
  /** Program and arguments that make the environment; those of an existing one are kept or replaced. */
  create(folder: string): string[]
  /** Program and arguments that install packages; the index is in the environment variables. */
  install(folder: string, wanted: readonly string[]): string[]
  /** Variables that name the package index. */
  indexVariables(index: string): Record<string, string>
}

const interpreter = (folder: string): string => join(folder, 'bin', 'python')

/**
 * Chooses uv where it is installed, else python3 with its modules venv and pip. Rejects with Failure `invalid_value` that
 * says what to install.
 */
export async function findPythonTools(
  environment: Environment,
  pythonMinor: number,
  signal: AbortSignal,
): Promise<PythonTools> {
  const { PATH = '' } = environment
  const uv = findProgram('uv', PATH)
  if (uv !== undefined)
    return {
      name: 'uv',
      create: folder => [uv, 'venv', '--quiet', '--clear', '--python', `>=3.${pythonMinor}`, folder],
      install: (folder, wanted) =>
        [[uv, 'pip', 'install', '--no-progress', '--compile-bytecode', '--python', interpreter(folder)], wanted].flat(),
      indexVariables: index => ({ UV_DEFAULT_INDEX: index, UV_INDEX_URL: index }),
    }
  const python = findProgram('python3', PATH)
  if (python === undefined)
    throw new Failure(
      'invalid_value',
      'Neither uv nor python3 is installed. Install one of them (Debian, Ubuntu: sudo apt install python3-venv) and try again.',
    )
  const [major = 0, minor = 0] = (
    await runInstaller([python, '-c', 'import sys; print(*sys.version_info[:2])'], { environment, signal })
  )
    .trim()
    .split(' ')
    .map(Number)
  if (major !== 3 || minor < pythonMinor)
    throw new Failure(
      'invalid_value',
      `${python} is Python ${major}.${minor}, and the libraries need 3.${pythonMinor} or later. Install uv, which brings its own Python, or a later python3 on the PATH.`,
    )
  return {
    name: 'pip',
    create: folder => [python, '-m', 'venv', '--clear', folder],
    install: (folder, wanted) =>
      [
        [interpreter(folder), '-m', 'pip', 'install', '--disable-pip-version-check', '--no-input'],
        ['--progress-bar', 'off'],
        wanted,
      ].flat(),
    indexVariables: index => ({ PIP_INDEX_URL: index }),
  }
}

/** The package index that the variables of uv, pip and infer name, so that each tool uses it; undefined for PyPI. */
export const configuredIndex = (environment: Environment): string | undefined =>
  indexVariables.map(name => environment[name]?.trim()).find(value => value)
