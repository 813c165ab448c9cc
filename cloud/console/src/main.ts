import './styles/index.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { find } from './pages';
import { address, listen } from './router.svelte';
import { listenToRows } from './rows';
import { start } from './session.svelte';
import { startTheme } from './theme.svelte';

startTheme();
listen();
listenToRows();
void start();
// The code of the page arrives while the session is looked for.
find(address.path)?.page.load().catch(() => {});
const target = document.getElementById('console');
if (target) mount(App, { target });
