import { Menu, Search, X } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { startLive, useLiveState } from '../api/live.ts'
import { Button, IconButton } from '../components/button.tsx'
import { loaded } from '../components/loaded.tsx'
import { Notice } from '../components/page.tsx'
import { shellText } from '../text/shell.ts'
import { AccountMenu } from './account-menu.tsx'
import { keepFocus } from './keep-focus.ts'
import { Mark } from './mark.tsx'
import { Navigation } from './navigation.tsx'
import { Shortcuts } from './shortcuts.tsx'

const Palette = loaded<{ close: () => void; showShortcuts: () => void }>(() => import('./palette.tsx'), null)

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

/** The frame: navigation at the side, or behind a button on a narrow screen, and the page. */
export function Shell({ children }: { children: ReactNode }) {
  const [menuOpen, setMenuOpen] = useState(false)
  const [shortcuts, setShortcuts] = useState(false)
  const [isFinding, setFinding] = useState(false)
  const find = useCallback(() => setFinding(true), [])
  const endFinding = useCallback(() => setFinding(false), [])
  const showShortcuts = useCallback(() => setShortcuts(true), [])
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
    <div className="md:grid md:h-dvh md:grid-cols-[14rem_1fr]">
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
        <Mark />
        <span className="flex-1 font-semibold">{shellText.product}</span>
        <IconButton icon={Search} label={shellText.palette.title} onClick={find} />
      </header>
      <nav
        aria-label={shellText.navigation}
        className={`bg-surface border-line flex-col border-r p-3 md:flex md:overflow-y-auto ${menuOpen ? 'fixed inset-0 top-13 z-20 flex overflow-y-auto' : 'hidden'}`}
      >
        <div className="hidden items-center gap-2 px-2 pb-3 md:flex">
          <Mark />
          <span className="text-base font-semibold">{shellText.product}</span>
        </div>
        <FindButton find={find} />
        <Navigation />
        <div className="border-line mt-3 border-t pt-2">
          <AccountMenu showShortcuts={showShortcuts} />
        </div>
      </nav>
      <div className="relative flex min-w-0 flex-col md:h-dvh md:overflow-y-auto md:not-has-data-fill:[scrollbar-gutter:stable]">
        <OfflineNotice />
        <main
          ref={main}
          id="main"
          tabIndex={-1}
          className="mx-auto w-full max-w-7xl flex-1 p-4 outline-none md:p-6 has-data-fill:flex has-data-fill:max-w-none has-data-fill:flex-col has-data-fill:p-0 lg:has-data-fill:min-h-0"
        >
          {children}
        </main>
      </div>
      <Shortcuts shown={shortcuts} show={setShortcuts} find={find} />
      {isFinding && <Palette close={endFinding} showShortcuts={showShortcuts} />}
    </div>
  )
}

/** Opens what Ctrl+K opens; on a narrow screen the button in the header does. */
const FindButton = ({ find }: { find: () => void }) => (
  <button
    type="button"
    aria-keyshortcuts="Control+K"
    onClick={find}
    className="border-line text-muted hover:border-control mb-3 hidden min-h-8 items-center gap-2 rounded-md border px-2 text-xs md:flex"
  >
    <Search aria-hidden className="size-4 shrink-0" />
    <span className="flex-1 text-left">{shellText.find}</span>
    <kbd className="font-sans">{shellText.findKey}</kbd>
  </button>
)
