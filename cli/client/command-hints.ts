import { printable } from '../terminal/paint.ts'

/** Routes that the server's messages name, and the command that does the same. */
const hints: readonly [route: RegExp, command: string][] = [
  [/`?GET \/(api\/model-status|(?:std|anthropic|replicate)\/v1\/models|ollama\/api\/tags)`?/g, 'infer ls'],
  [/`?POST \/std\/v1\/files`?/g, 'infer file upload'],
  [/`?POST \/std\/v1\/videos`?/g, 'infer video'],
  [/`?POST \/api\/workflow-executions\/(\w+)\/retry`?/g, 'infer execution retry $1'],
  [/`?POST \/api\/jobs\/(\w+)\/(cancel|retry)`?/g, 'infer job $2 $1'],
  [/`?DELETE \/api\/jobs\/(\{id\}|\w+)`?/g, 'infer job delete $1'],
  [/`?DELETE \/std\/v1\/files\/(\{id\}|[\w-]+)`?/g, 'infer file delete $1'],
  [/'\w+' to POST \/slug\/\{slug\}/g, 'use infer video --all-formats'],
  [/`?GET \/api\/jobs`?(?![/\w])/g, 'infer job list'],
]

/** Replaces the routes in a server's message by commands, for a terminal user. */
export const withCommands = (sentence: string): string =>
  hints.reduce((text, [route, command]) => text.replace(route, command), sentence)

/** Makes a stored message, such as the error of a job, printable: commands instead of routes, no control characters. */
export const storedSentence = (sentence: string): string => withCommands(printable(sentence))
