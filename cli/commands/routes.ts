import type { Command } from '@commander-js/extra-typings'
import { withExamples, withJson } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer routes`: lists every route with the scope that it requires. */
export function define(command: Command, terminal: Terminal): void {
  withJson(command).action(async options => {
    const { routeTable } = await import('../../server/routes.ts')
    const shown = routeTable().map(({ method, path, aliases, scope, summary }) => ({
      method,
      path,
      aliases: aliases ?? [],
      scope,
      summary,
    }))
    if (options.json) terminal.json(shown)
    else
      terminal.table(
        ['method', 'path', 'scope', 'does'],
        shown.map(({ method, path, scope, summary }) => [method, path, scope, summary]),
      )
  })
  withExamples(command, [
    ['infer routes', 'as a table'],
    ['infer routes --json', 'for a program, with aliases'],
  ])
}
