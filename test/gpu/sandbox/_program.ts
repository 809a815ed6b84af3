import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Whether programs can be built here. */
export const hasCompiler = spawnSync('gcc', ['--version']).status === 0

/**
 * Builds `<folder>/build/server`, which prints `linked` if it finds its libraries: `libone.so` beside it by
 * `$ORIGIN`, and `deep/libtwo.so`, which only libone names, by an absolute RPATH as build systems write it. Returns the
 * path of the program.
 */
export function buildProgram(folder: string): string {
  const [build, deep] = [join(folder, 'build'), join(folder, 'deep')]
  for (const one of [build, deep]) mkdirSync(one, { recursive: true })
  const compile = (output: string, source: string, ...more: string[]) => {
    writeFileSync(`${output}.c`, source)
    execFileSync('gcc', ['-o', output, `${output}.c`, ...more])
  }
  const shared = ['-shared', '-fPIC']
  compile(join(deep, 'libtwo.so'), 'const char *two(void) { return "linked"; }', ...shared)
  compile(
    join(build, 'libone.so'),
    'const char *two(void); const char *one(void) { return two(); }',
    ...shared,
    `-L${deep}`,
    '-ltwo',
    `-Wl,-rpath,${deep}`,
  )
  const program = join(build, 'server')
  compile(
    program,
    '#include <stdio.h>\nconst char *one(void); int main(void) { puts(one()); }',
    `-L${build}`,
    '-lone',
    '-Wl,-rpath,$ORIGIN',
    `-Wl,-rpath-link,${deep}`,
  )
  return program
}
