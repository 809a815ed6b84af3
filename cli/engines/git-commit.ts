import { mkdirSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { withoutLogin } from '../../core/models/hub/settings.ts'
import { findProgram } from '../../gpu/sandbox/program.ts'
import { runInstaller, withOutput } from './run-installer.ts'

interface CommitOptions {
  /** Address of the repository, or its folder. */
  from: string
  /** Its full hash. */
  commit: string
  /** The folder for its files, which is replaced. */
  into: string
  environment: Readonly<Record<string, string | undefined>>
  signal: AbortSignal
  /** Called with each line that git prints. */
  onLine: (line: string) => void
}

/**
 * Downloads the files of one commit of a Git repository, without its history. Git verifies them by the hash of the commit.
 * Rejects with Failure `invalid_value`, which says what to do, and with the reason of the signal.
 */
export async function fetchCommit({ from, commit, into, environment, signal, onLine }: CommitOptions): Promise<void> {
  const git = findProgram('git', environment.PATH ?? '')
  if (git === undefined)
    throw new Failure(
      'invalid_value',
      'git is not installed, with which the source is downloaded and verified. Install it (Debian, Ubuntu: sudo apt install git; Fedora: sudo dnf install git) and try again.',
    )
  rmSync(into, { recursive: true, force: true })
  mkdirSync(into, { recursive: true, mode: 0o700 })
  const run = (...args: string[]) =>
    runInstaller([git, '-C', into, ...args], {
      environment: gitEnvironment(environment),
      signal,
      onLine,
      failureFor: (_file, output, how) => gitFailure({ from, commit, output, how }),
    })
  // No template: its hooks are programs of the user.
  await run('init', '--quiet', '--template=')
  await run('fetch', '--progress', '--no-tags', '--depth', '1', '--', addressOf(from), commit)
  // A branch of the repository can have the name of a commit.
  const fetched = (await run('rev-parse', '--verify', 'FETCH_HEAD^{commit}')).trim()
  if (fetched !== commit)
    throw new Failure(
      'invalid_value',
      `The repository ${withoutLogin(from)} gave the commit ${fetched} instead of ${commit}, so nothing was installed. Choose another repository with --from.`,
    )
  await run('-c', 'advice.detachedHead=false', '-c', 'core.autocrlf=false', 'checkout', '--quiet', '--detach', commit)
}

/** A folder as an absolute path; an address as it is. */
const addressOf = (from: string): string => (isAddress(from) ? from : resolve(from))

/** Whether a text names a repository on a server, as in https://… and git@host:path. */
const isAddress = (text: string): boolean => /^([a-z+]+:\/\/|[\w.-]+@[\w.-]+:)/i.test(text)

/** Without the variables by which git would use the repository of the caller, and without questions. */
const gitEnvironment = (environment: CommitOptions['environment']): Record<string, string | undefined> => ({
  ...environment,
  GIT_DIR: undefined,
  GIT_WORK_TREE: undefined,
  GIT_INDEX_FILE: undefined,
  GIT_OBJECT_DIRECTORY: undefined,
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
})

/** What the output of git says about a failure. The first match counts. */
const causes: readonly [pattern: RegExp, sentence: (from: string, commit: string) => string][] = [
  [
    /not our ref|couldn't find remote ref|unadvertised object|did not send all necessary objects/i,
    (from, commit) =>
      `The repository ${from} has no commit ${commit}, or gives no single commits. Update it, or choose another one with --commit.`,
  ],
  [
    /does not appear to be a git repository|could not read Username|Authentication failed|Permission denied|Repository not found/i,
    from => `There is no Git repository at ${from}, or it asks for a login. Correct --from.`,
  ],
  [
    /Could not resolve host|unable to access|Failed to connect|Could not read from remote|early EOF|timed out|unexpected disconnect/i,
    from =>
      `The repository ${from} cannot be reached. Check the network and the proxy (HTTPS_PROXY), or name a mirror with --from, and run the command again.`,
  ],
  [
    /No space left on device|Disk quota exceeded/i,
    () => 'The disk is full. Free some space and run the command again.',
  ],
]

/** The failure of git by its output. Pure. */
export function gitFailure({
  from,
  commit,
  output,
  how,
}: Pick<CommitOptions, 'from' | 'commit'> & { output: string; how: string }): Failure {
  const sentence = causes.find(([pattern]) => pattern.test(output))?.[1](withoutLogin(from), commit)
  return new Failure('invalid_value', withOutput(sentence ?? `git ended ${how}. It printed:`, output))
}
