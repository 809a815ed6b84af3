import { printable } from './paint.ts'

/** What a server tells an API user to do next, and the command that does it. */
const hints: readonly [route: RegExp, command: string][] = [
  [/`?GET \/(api\/model-status|std\/v1\/models)`?/g, 'infer ls'],
  [/`?POST \/api\/workflow-executions\/(\w+)\/retry`?/g, 'infer execution retry $1'],
  [/`?POST \/api\/jobs\/(\w+)\/(cancel|retry)`?/g, 'infer job $2 $1'],
  [/`?GET \/api\/jobs`?(?![/\w])/g, 'infer job list'],
]

/** A sentence of a server for somebody at a terminal: with commands in place of routes. */
export const withCommands = (sentence: string): string =>
  hints.reduce((text, [route, command]) => text.replace(route, command), sentence)

/** A stored sentence of a server, such as the error of a job, as it is shown: also without control characters. */
export const storedSentence = (sentence: string): string => withCommands(printable(sentence))
