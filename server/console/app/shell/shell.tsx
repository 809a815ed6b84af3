import { Keyboard, LogOut, Menu, Monitor, Moon, Sun, X } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useSession } from '../api/client.ts'
import { startLive, useLiveState } from '../api/live.ts'
import { Button, IconButton } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { Notice } from '../components/page.tsx'
import { pages } from '../pages.ts'
import { shellText } from '../text/shell.ts'
import { keepFocus } from './keep-focus.ts'
import { useTheme } from './theme.ts'

/** Milliseconds after which a lost connection is worth a word; shorter interruptions heal by themselves. */
const patienceMs = 2_000

/** Says that the page may be out of date, as long as the server does not answer. */
function OfflineNotice() {
  const offline = useLiveState() === 'offline'
  const [shown, setShown] = useState(false)
  useEffect(() => {
    if (!offline) return setShown(false)
    const timer = setTimeout(() => setShown(true), patienceMs)
    return () => clearTimeout(timer)
  }, [offline])
  if (!shown) return null
  return (
    <Notice kind="warning" className="m-3 mb-0">
      <span className="flex-1">{shellText.offline}</span>
      <Button small onClick={() => startLive().reconnect()} label={shellText.reconnect} />
    </Notice>
  )
}

const themeIcons = { auto: Monitor, light: Sun, dark: Moon }

/** The frame: navigation at the side, or behind a button on a narrow screen, and the page. */
export function Shell({ children }: { children: ReactNode }) {
  const [menuOpen, setMenuOpen] = useState(false)
  const [shortcuts, setShortcuts] = useState(false)
  const [location] = useLocation()
  const main = useRef<HTMLElement>(null)
  const header = useRef<HTMLElement>(null)
  const first = useRef(true)
  const section = location.split('/')[1]

  // A person who cannot see the screen learns that another page is here.
  useEffect(() => {
    setMenuOpen(false)
    if (first.current) first.current = false
    else main.current?.focus()
  }, [section])

  useEffect(keepFocus, [])

  useEffect(() => {
    if (!menuOpen) return
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return
      setMenuOpen(false)
      header.current?.querySelector('button')?.focus()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [menuOpen])

  return (
    <div className="md:grid md:h-dvh md:grid-cols-[13rem_1fr]">
      <a href="#main" className="bg-accent text-accent-text sr-only z-50 rounded p-2 focus:not-sr-only focus:absolute">
        {shellText.skip}
      </a>
      <header
        ref={header}
        className="bg-surface border-line sticky top-0 z-30 flex items-center gap-2 border-b px-3 py-2 md:hidden"
      >
        <IconButton
          icon={menuOpen ? X : Menu}
          label={menuOpen ? shellText.closeMenu : shellText.menu}
          aria-expanded={menuOpen}
          onClick={() => setMenuOpen(!menuOpen)}
        />
        <span className="font-semibold">{shellText.product}</span>
      </header>
      <nav
        aria-label={shellText.navigation}
        className={`bg-surface border-line flex-col border-r p-3 md:flex md:overflow-y-auto ${menuOpen ? 'fixed inset-0 top-13 z-20 flex overflow-y-auto' : 'hidden'}`}
      >
        <span className="hidden px-2 pb-3 text-base font-semibold md:block">{shellText.product}</span>
        <Links />
        <Footer showShortcuts={() => setShortcuts(true)} />
      </nav>
      <div className="relative flex min-w-0 flex-col md:h-dvh md:overflow-y-auto">
        <OfflineNotice />
        <main ref={main} id="main" tabIndex={-1} className="mx-auto w-full max-w-7xl flex-1 p-4 outline-none md:p-6">
          {children}
        </main>
      </div>
      <Shortcuts shown={shortcuts} show={setShortcuts} />
    </div>
  )
}

function Links() {
  const { can } = useSession()
  const [location] = useLocation()
  const offered = pages.filter(page => can(page.scope))
  const ordered = [offered.at(-1)!, ...offered.slice(0, -1)]
  return (
    <ul className="flex-1 space-y-0.5">
      {ordered.map(({ path, name, icon: Icon, Content }) => {
        const current = path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`)
        return (
          <li key={path}>
            <Link
              href={path}
              // Before the click: whether it can be loaded is said when it is opened.
              onPointerEnter={() => void Content.load().catch(() => {})}
              aria-current={current ? 'page' : undefined}
              className={`flex items-center gap-2.5 rounded-md px-2 py-2 md:py-1.5 ${current ? 'bg-accent-soft text-accent font-medium' : 'text-muted hover:bg-raised hover:text-text'}`}
            >
              <Icon aria-hidden className="size-4 shrink-0" />
              {name}
            </Link>
          </li>
        )
      })}
    </ul>
  )
}

function Footer({ showShortcuts }: { showShortcuts: () => void }) {
  const { session, signOut } = useSession()
  const [theme, nextTheme] = useTheme()
  const account = shellText.account(session.token.name, session.organization.name)
  return (
    <div className="border-line mt-3 space-y-2 border-t pt-3">
      <div className="text-muted flex gap-3 px-2 text-xs">
        <a className="hover:text-text underline" href="/docs">
          {shellText.documentation}
        </a>
        <a className="hover:text-text underline" href="/docs/guides">
          {shellText.guides}
        </a>
      </div>
      <p className="px-2 text-xs" title={account}>
        <span className="sr-only">{account}</span>
        <span aria-hidden className="block truncate font-medium">
          {session.token.name}
        </span>
        <span aria-hidden className="text-muted block truncate">
          {session.organization.name}
        </span>
      </p>
      <div className="flex gap-1">
        <IconButton icon={themeIcons[theme]} label={shellText.theme[theme]} onClick={nextTheme} />
        <IconButton icon={Keyboard} label={shellText.shortcuts} onClick={showShortcuts} />
        <IconButton icon={LogOut} label={shellText.signOut} onClick={() => void signOut()} />
      </div>
    </div>
  )
}

/** Milliseconds in which a letter follows `g`. */
const sequenceMs = 1_500

const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest('dialog') !== null)

/** Keyboard shortcuts of all pages: `/` searches, `g` and a letter goes to a page, `?` shows them. */
function Shortcuts({ shown, show }: { shown: boolean; show: (shown: boolean) => void }) {
  const [, go] = useLocation()
  const { can } = useSession()
  const began = useRef(0)
  const [offered] = useState(() => pages.filter(page => can(page.scope)))

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return
      const follows = performance.now() - began.current < sequenceMs
      began.current = 0
      const page = follows ? offered.find(({ key }) => key === event.key) : undefined
      if (page) go(page.path)
      else if (event.key === 'g') began.current = performance.now()
      else if (event.key === '?') show(true)
      else if (event.key === '/') document.querySelector<HTMLElement>('main [type=search]')?.focus()
      else return
      event.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [go, offered, show])

  if (!shown) return null
  const rows = [
    { keys: ['/'], does: shellText.shortcutList.search },
    ...offered.map(({ key, name }) => ({ keys: ['g', key], does: shellText.shortcutList.go(name) })),
    { keys: ['?'], does: shellText.shortcutList.show },
  ]
  return (
    <Dialog title={shellText.shortcuts} close={() => show(false)}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
        {rows.map(({ keys, does }) => (
          <div key={does} className="contents">
            <dt className="flex items-center gap-1">
              {keys.map((key, at) => (
                <span key={key} className="contents">
                  {at > 0 && <span className="text-muted text-xs">{shellText.keyThen}</span>}
                  <kbd className="border-line bg-raised rounded border px-1.5 font-mono text-xs">{key}</kbd>
                </span>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
