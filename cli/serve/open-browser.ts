import { spawn } from 'node:child_process'

/**
 * Opens the address in the user's browser by xdg-open, found on the PATH. Resolves with the reason when none was opened.
 * listhen could do it too, but it runs whatever lies at `/tmp/xdg-open`, which any user of the machine can put there.
 */
export function openBrowser(url: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const child = spawn('xdg-open', [url], { stdio: 'ignore', detached: true })
    child.once('error', (cause: NodeJS.ErrnoException) =>
      resolve(cause.code === 'ENOENT' ? 'xdg-open is not installed' : cause.message),
    )
    child.once('exit', code => resolve(code === 0 ? undefined : `xdg-open ended with ${code}`))
    // A browser that xdg-open has become must not hold the server.
    child.unref()
  })
}
