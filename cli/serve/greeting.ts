import { type Paint, wrapText } from '../terminal/styled-line.ts'
import { lanAddress } from './lan-address.ts'
import { type OwnCommand, tryNext } from './try-next.ts'

/** Facts for the greeting when the server is ready. */
export interface Started {
  version: string
  /** How the user runs this program. */
  own: OwnCommand
  url: string
  /** All base URLs of the server, `url` first. */
  urls: readonly string[]
  /** The self-signed certificate that clients must trust; undefined if they need none. */
  trust?: string | undefined
  /** Opens the console signed in, once; undefined without a console. */
  consoleLink?: string | undefined
  tokenPath: string
  firstStart: { organizationId: string; secret: string } | undefined
  models: readonly { id: string; tasks: readonly string[]; description?: string | undefined }[]
  /** Whether all models are toy models. */
  onlyToys?: boolean
}

/**
 * Returns the greeting for a terminal of `columns`. Commands are never wrapped, so that they can be copied. Contains
 * the secret only at the first start.
 */
export function greeting(
  { version, own, url, urls, trust, consoleLink, tokenPath, firstStart, models, onlyToys }: Started,
  paint: Paint,
  columns = 80,
): string {
  const width = Math.max(0, ...models.map(({ id }) => id.length))
  const indent = width + 4
  const beside = (text: string) => wrapText(text, Math.max(30, columns - indent))
  const lines = ['', `${paint.strong(`infer ${version}`)} is ready at ${paint.name(url)}`]
  for (const other of urls.slice(1)) lines.push(`  from other machines  ${paint.name(other)}`)
  if (trust !== undefined) lines.push(`  self-signed certificate, for clients to trust  ${trust}`)
  lines.push('')
  if (models.length === 0) lines.push('No model is configured yet. Add one with: infer model add')
  for (const { id, tasks, description } of models) {
    const [first = '', ...more] = beside(tasks.join(', '))
    lines.push(`  ${paint.good(id.padEnd(width))}  ${first}`, ...more.map(line => ' '.repeat(indent) + line))
    if (description) lines.push(...beside(description).map(line => ' '.repeat(indent) + paint.faint(line)))
  }
  lines.push('')
  if (firstStart)
    lines.push(
      `${paint.strong('Root token')}  ${firstStart.secret}`,
      `            Shown only once. It has all permissions in ${firstStart.organizationId}`,
      `            and is stored in ${tokenPath}`,
      '',
    )
  if (consoleLink !== undefined)
    lines.push(
      `${paint.strong('Console')}  ${consoleLink}`,
      `         Signs in once, within two minutes. Later: ${own.line('console')}`,
      '',
    )
  lines.push(paint.strong('Try next'))
  for (const { label, lines: shell } of tryNext({ own, url, lan: lanAddress(urls), trust, tokenPath, models }))
    lines.push('', `  ${paint.faint(label)}`, ...shell.map(line => `  ${line}`))
  lines.push(
    '',
    ...(onlyToys ? [paint.faint(`Real models: ${own.line('model catalog')}`)] : []),
    paint.faint(`Reference: ${url}/docs`),
    paint.faint(`Check this machine: ${own.line('doctor')}   Stop: Ctrl-C`),
    '',
  )
  return lines.join('\n')
}

/**
 * Returns the greeting for a pipe: one fact per line, its name first. Without the secret, because pipes end in logs.
 */
export function plainGreeting({ url, urls, trust, tokenPath, firstStart, models }: Started): string {
  return [
    `ready ${url}`,
    ...urls.slice(1).map(other => `address ${other}`),
    ...(trust === undefined ? [] : [`certificate ${trust}`]),
    ...models.map(({ id, tasks }) => `model ${id} ${tasks.join(',')}`),
    `root-token ${tokenPath}`,
    ...(firstStart ? [`organization ${firstStart.organizationId}`] : []),
  ].join('\n')
}
