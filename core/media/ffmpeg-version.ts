import { runProgram } from './program.ts'

/** Of 2018, and older than what any supported distribution has; nothing older has been tried. */
const oldestMajor = 4

/**
 * Asks the program at this path for its version. `fault`: why it cannot be used, as the end of a sentence that begins
 * with its name. Never rejects.
 */
export async function ffmpegVersion(file: string): Promise<{ version: string } | { fault: string }> {
  try {
    const text = (await runProgram({ file, args: ['-version'], deadlineMs: 10_000 })).toString('utf8')
    const version = /^ffmpeg version (\S+)/.exec(text)?.[1]
    if (version === undefined) return { fault: 'is not ffmpeg' }
    if (isTooOld(version))
      return { fault: `has version ${version}, which is too old: ${oldestMajor} or newer is needed` }
    return { version }
  } catch {
    // The message of a failed run is about files that callers send.
    return { fault: 'cannot be run: it failed when it was asked for its version' }
  }
}

/** Builds from a repository name a commit and no number. */
const isTooOld = (version: string): boolean => Number(/^n?(\d+)\./.exec(version)?.[1] ?? oldestMajor) < oldestMajor
