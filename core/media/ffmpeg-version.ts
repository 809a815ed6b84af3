import { runProgram } from './program.ts'

/** Released in 2018; all supported distributions have a newer one, and older ones are untested. */
const oldestMajor = 4

/**
 * Runs the program at this path with `-version`. `fault`: why it cannot be used, as the end of a sentence that begins
 * with its path. Never rejects.
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
    // The message of `runProgram` does not fit here: it is about files that callers send.
    return { fault: 'cannot be run: it failed with the option -version' }
  }
}

/** Builds from a repository have a commit in place of a number and count as new. */
const isTooOld = (version: string): boolean => Number(/^n?(\d+)\./.exec(version)?.[1] ?? oldestMajor) < oldestMajor
