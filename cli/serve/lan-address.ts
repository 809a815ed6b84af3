import { spawn } from 'node:child_process'

const loopback = /^https?:\/\/(127\.|localhost[:/]|\[::1\])/

/** Returns the first of these base URLs that other machines can reach; undefined when there is none. */
export const lanAddress = (urls: readonly string[]): string | undefined => urls.find(url => !loopback.test(`${url}/`))

/** Returns the same link at the address that other machines reach, if it is at another of these base URLs. */
export function reachableLink(link: string, urls: readonly string[]): string {
  const { origin, href } = new URL(link)
  const reached = lanAddress(urls)
  return reached !== undefined && loopback.test(`${origin}/`) ? reached + href.slice(origin.length) : link
}

/**
 * Opens the URL in the user's browser with xdg-open from the PATH. Resolves with the reason when none was opened.
 * listhen has the same function, but it runs `/tmp/xdg-open`, which any user of the machine can create.
 */
export function openBrowser(url: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const child = spawn('xdg-open', [url], { stdio: 'ignore', detached: true })
    child.once('error', (cause: NodeJS.ErrnoException) =>
      resolve(cause.code === 'ENOENT' ? 'xdg-open is not installed' : cause.message),
    )
    child.once('exit', code => resolve(code === 0 ? undefined : `xdg-open ended with ${code}`))
    // xdg-open may turn into the browser process, which must not keep the server alive.
    child.unref()
  })
}
