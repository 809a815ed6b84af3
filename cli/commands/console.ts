import type { Command } from '@commander-js/extra-typings'
import { dataDirectory } from '../../core/config.ts'
import { dataOf, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { lanAddress, openBrowser, reachableLink } from '../serve/lan-address.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Without a display, as over SSH, there is nobody in front of a browser, and xdg-open would run one in the terminal. */
const hasDisplay = ({ environment }: Terminal): boolean =>
  Boolean(environment['DISPLAY'] || environment['WAYLAND_DISPLAY'])

const onlyHere = (port: string): string =>
  `Only this machine reaches this address. From another one, forward the port (ssh -L ${port}:127.0.0.1:${port} HOST), or start the server with --listen 0.0.0.0:${port} --https.`

/** `infer console`: opens the web console signed in, with a one-time link. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Opens the web console in the browser, signed in as the token of this command. The link works once and within two minutes. Without a browser on this machine it is printed.',
    )
    .option('--no-open', 'print the link and open no browser')
    .action(async ({ open, json, dataDir }) => {
      const client = openClient(dataDir)
      const { url, expires_at } = await dataOf(client.api.POST('/api/session/codes'))
      const urls = client.isRemote ? [] : (runningServer(dataDirectory(dataDir))?.urls ?? [])
      // Who reads the link may sit at another machine.
      const link = reachableLink(url, urls)
      if (json) return terminal.json({ url: link, expires_at })
      if (open && terminal.isTerminal && hasDisplay(terminal)) {
        const reason = await openBrowser(url)
        if (reason === undefined) return terminal.print(`The console is open in the browser: ${client.url}/console`)
        terminal.remark(`No browser was opened, because ${reason}. Open this link yourself within two minutes.`)
      }
      terminal.print(link)
      if (!client.isRemote && lanAddress([link]) === undefined) terminal.remark(onlyHere(new URL(link).port))
    })
  withExamples(command, [
    ['infer console', 'open the console signed in'],
    ['infer console --no-open', 'print the link, for a browser on another machine'],
    ['ssh box infer console', 'the link to the console of another machine'],
  ])
}
