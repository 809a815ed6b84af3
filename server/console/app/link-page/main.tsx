import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { applyTheme } from '../shell/theme.ts'
import { LinkPage } from './link-page.tsx'

applyTheme()
const path = location.pathname.replace(/\/$/, '')
createRoot(document.getElementById('link-page')!).render(
  <StrictMode>
    <LinkPage path={path} />
  </StrictMode>,
)
